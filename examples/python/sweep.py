"""How much does each mode carry over a link that loses packets? A sweep, with intervals.

    python sweep.py
"""

import fulmar_lab as lab

link = lab.Scenario.build(
    run={"duration": "60s"},
    hop={"rate": "8mbit", "delay": "20ms"},
    flow={"transport": "aerotp", "traffic": "bulk", "bytes": "500kB"},
)
grid = {"flow.mode": ["reliable", "nack-mack"], "hop.loss": ["0%", "5%", "20%"]}
points = lab.sweep(link, grid, runs=5).points

print("mode        loss  goodput, Mbit/s")
for point in points.rows():
    mean, half = point["goodput_bps"] / 1e6, point["goodput_bps_ci95"] / 1e6
    print(f"{point['flow.mode']:<10} {point['hop.loss']:>4.0%}  {mean:.3f} ± {half:.3f}")
