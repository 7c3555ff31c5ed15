"""Groups of settings: what they all refuse, and those of whom the agent asks."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pipeline.setting_values import HOUR, MIB, BaseUrl, File, Label, Name, PageUrl, Text, no_truth


class Part(BaseModel):
    """A group of settings that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, value: Any) -> Any:
        return no_truth(value)


class ScrapeSettings(Part):
    """A page of another program that the agent reads, over HTTP or from a file (`file:///path`). Times are seconds.

    `interval` 0 is the agent's own, which is the shortest. `labels` are added to every series. `token_file` holds a bearer token.
    """

    name: Label
    url: PageUrl
    interval: float = Field(0.0, ge=0, le=HOUR)
    timeout: float = Field(4.0, ge=0.1, le=60)
    labels: dict[str, Text] = Field(default_factory=dict)
    token_file: File = ""
    max_bytes: int = Field(16 * MIB, ge=1 << 10, le=256 * MIB)
    max_series: int = Field(10_000, ge=0, le=1_000_000)


class SlurmSettings(Part):
    """How Slurm is asked: by the program `scontrol`; or, about the whole cluster, by slurmrestd at `url`, with the `version` of its API,
    a user and a file with the user's token."""

    scontrol: Name = "scontrol"
    url: BaseUrl = ""
    version: Annotated[str, Field(pattern=r"^v\d+\.\d+\.\d+$")] = "v0.0.40"
    user: Text = ""
    token_file: File = ""


class KubernetesSettings(Part):
    """Where Kubernetes' API server is. The defaults are those of a pod with a service account, which must be allowed to list and watch
    nodes, pods and events of all namespaces."""

    url: BaseUrl = "https://kubernetes.default.svc"
    token_file: File = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    ca_file: File = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"


class RedfishSettings(Part):
    """The board's management controller: its address ("https://10.0.0.7"; none: it is not asked), a user, and a file with its certificate
    or its CA's, where that is not one that the system knows."""

    url: BaseUrl = ""
    user: Text = ""
    password: Text = ""
    ca_file: File = ""
