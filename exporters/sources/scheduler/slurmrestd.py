"""Slurm's nodes and jobs from slurmrestd. Source: Slurm's REST API; its version moves with every release and is a setting."""

import requests
from urllib3.exceptions import HTTPError

from exporters.sources.scheduler.slurm import MOST, Record, of_json
from exporters.sources.web import token, why
from pipeline.sizes import bound


class Slurmrestd:
    """The server at `url`. `token_file` holds a JWT for `user`; it is read anew for each question."""

    def __init__(self, url: str, version: str, user: str, token_file: str) -> None:
        self._base, self._user, self._token_file = f"{url.rstrip('/')}/slurm/{version}", user, token_file

    def show(self, what: str, timeout: float) -> list[Record]:
        """All `nodes` or `jobs`. Raises OSError where it does not answer so."""
        headers = {"Accept": "application/json"}
        if self._user:
            headers["X-SLURM-USER-NAME"] = self._user
        if secret := token(self._token_file):
            headers["X-SLURM-USER-TOKEN"] = secret
        try:
            with requests.Session() as session:
                session.trust_env = False
                with session.get(f"{self._base}/{what}/", headers=headers, timeout=timeout, allow_redirects=False, stream=True) as response:
                    if response.status_code != 200:
                        raise OSError(f"slurmrestd answers {what} with status {response.status_code}")
                    body = response.raw.read(MOST + 1, decode_content=True)
        except (requests.RequestException, HTTPError, ValueError) as e:
            raise OSError(f"slurmrestd at {self._base} does not answer: {why(e)}") from e
        if len(body) > MOST:
            raise OSError(f"slurmrestd's {what} are longer than {bound(MOST)}")
        return of_json(body.decode("utf-8", "backslashreplace"), what)
