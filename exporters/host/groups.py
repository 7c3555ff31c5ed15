"""Which control groups the ranks of this node are in, remembered beyond the ranks' end."""

from dataclasses import dataclass, field

from exporters.collector import RankProcess, Site
from exporters.sources import cgroups
from exporters.sources.cgroups import Group

KEEP = 120.0  # seconds that a group is looked at after its last rank


@dataclass(slots=True)
class Groups:
    """The control groups of the ranks at `site`, by run and path."""

    site: Site
    _of_ranks: dict[RankProcess, Group | None] = field(default_factory=dict)
    _seen: dict[tuple[str, str], tuple[Group, float]] = field(default_factory=dict)
    _members: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def found(self, clock: float) -> dict[tuple[str, str], Group]:
        """The groups of the ranks that are there, and of those that were within the last KEEP seconds. `clock` is any seconds."""
        ranks = self.site.ranks()
        for rank in self._of_ranks.keys() - set(ranks):
            del self._of_ranks[rank]
        for rank in ranks:
            group = cgroups.group_of(self.site.proc, self.site.cgroups, rank.pid) or self._of_ranks.get(rank)  # it may be moved
            self._of_ranks[rank] = group
            if group is not None:
                self._seen[rank.run, group.path] = (group, clock)
                self._members.setdefault((rank.run, group.path), set()).add(rank.rank)
        self._seen = {key: (group, at) for key, (group, at) in self._seen.items() if clock - at <= KEEP}
        self._members = {key: ranks for key, ranks in self._members.items() if key in self._seen}
        return {key: group for key, (group, _) in self._seen.items()}

    def ranks_in(self, run: str, path: str) -> list[int]:
        """The ranks of `run` that are or were in the group at `path`."""
        return sorted(self._members.get((run, path), ()))
