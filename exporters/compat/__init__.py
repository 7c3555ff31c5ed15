"""Our readings under other exporters' names, for dashboards and rules that were written for those."""
