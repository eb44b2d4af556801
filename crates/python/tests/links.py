"""Scenarios of the tests, each a second's work at most."""

import fulmar_lab as lab

LOSSES = {"hop.loss": ["0%", "5%", "20%"]}


def link() -> lab.Scenario:
    return lab.Scenario.build(
        run={"duration": "60s"},
        hop={"rate": "8mbit", "delay": "20ms"},
        flow={"transport": "aerotp", "traffic": "bulk", "bytes": "50kB"},
    )
