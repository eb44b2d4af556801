"""The same sweep on a Dask cluster; here one of two processes of this machine.

    python dask_sweep.py [SCHEDULER:PORT]

Killed, the same command goes on where it was: the parts that were made lie in lossy.parquet.parts.
"""

import sys

from distributed import Client

import fulmar_lab as lab

link = lab.Scenario.build(
    run={"duration": "60s"},
    hop={"rate": "8mbit", "delay": "20ms"},
    flow={"transport": "aerotp", "traffic": "bulk", "bytes": "100kB"},
)


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else None
    with Client(address, dashboard_address=None) if address else Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        results = lab.sweep(link, {"hop.loss": ["0%", "5%", "20%"]}, runs=20, on=client, out="lossy.parquet")
    print(results.points.to_pandas()[["hop.loss", "n", "goodput_bps", "goodput_bps_ci95"]])


# Dask's workers import this file.
if __name__ == "__main__":
    main()
