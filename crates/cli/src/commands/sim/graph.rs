//! The tables of a graph: what each flow got, and what each direction of a hop carried.

use crate::table::Listing;
use fulmar_proto::units::Bitrate;
use fulmar_sim::PointPlan;
use fulmar_sim::experiment::Experiment;
use fulmar_sim::report::aggregate::AggregateRecord;

/// The flows that have rows, at most.
const FLOWS_MAX: usize = 20;

/// The tables of all points, or nothing of a chain.
pub(super) fn tables(
    experiment: &Experiment,
    aggregates: &[&AggregateRecord],
    varied: &[String],
) -> Vec<Listing> {
    let points = aggregates
        .iter()
        .map(|aggregate| (&experiment.points[aggregate.point].plan, *aggregate));
    let points: Vec<(&PointPlan, &AggregateRecord)> = points
        .filter(|(plan, _)| !plan.topology.is_chain())
        .collect();
    if points.is_empty() {
        return Vec::new();
    }
    let place = |aggregate: &AggregateRecord| {
        let values = &experiment.points[aggregate.point].varied;
        values.iter().map(|(_, value)| value.clone()).collect()
    };
    let headings = |own: &[&str]| {
        let own = own.iter().map(|heading| (*heading).to_owned());
        varied.iter().cloned().chain(own).collect::<Vec<String>>()
    };
    let mut flows = Listing::new(
        headings(&[
            "flow",
            "from",
            "to",
            "goodput Mbit/s",
            "delay p50 ms",
            "delay p99 ms",
        ]),
        varied.len() + 3,
    );
    let mut ways = Listing::new(
        headings(&[
            "hop",
            "from",
            "to",
            "Mbit/s",
            "of rate %",
            "packets",
            "lost %",
        ]),
        varied.len() + 3,
    );
    for (plan, aggregate) in points {
        let place: Vec<String> = place(aggregate);
        for cells in flow_rows(plan, aggregate) {
            flows.row(place.iter().cloned().chain(cells));
        }
        for cells in way_rows(plan, aggregate) {
            ways.row(place.iter().cloned().chain(cells));
        }
    }
    vec![flows, ways]
}

/// The mean of a measure, divided by a unit.
fn mean(aggregate: &AggregateRecord, name: &str, unit: f64) -> Option<f64> {
    Some(aggregate.summary(name)?.mean? / unit)
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn flow_rows<'a>(
    plan: &'a PointPlan,
    aggregate: &'a AggregateRecord,
) -> impl Iterator<Item = [String; 6]> + 'a {
    let flows = plan.flows.iter().enumerate().take(FLOWS_MAX);
    flows.map(move |(index, flow)| {
        let [from, to] = flow
            .ends
            .nodes
            .map(|node| plan.topology.nodes()[node].clone());
        let of = |name: &str, unit| {
            let mean = mean(aggregate, &format!("by_flow.{index}.{name}"), unit);
            shown(mean, 3)
        };
        [
            index.to_string(),
            from,
            to,
            of("goodput_bps", 1e6),
            of("delay_p50_s", 1e-3),
            of("delay_p99_s", 1e-3),
        ]
    })
}

/// The rows of the directions that carried something.
fn way_rows<'a>(
    plan: &'a PointPlan,
    aggregate: &'a AggregateRecord,
) -> impl Iterator<Item = [String; 7]> + 'a {
    plan.hops.iter().enumerate().flat_map(move |(index, hop)| {
        let [from, to] = plan.topology.ends_of(index);
        let ways = [
            ("forward", from, to, hop.forward.rate),
            ("reverse", to, from, hop.reverse.rate),
        ];
        let row = move |(direction, from, to, rate): (&str, usize, usize, Option<Bitrate>)| {
            let name = plan.topology.hop_name(index);
            let of = |measure: &str| {
                let name = format!("by_way.{name}/{direction}.{measure}");
                mean(aggregate, &name, 1.0)
            };
            let packets = of("packets").filter(|packets| *packets > 0.0)?;
            let losses = ["lost", "lost_outage", "lost_queue", "lost_frame_check"];
            let lost: f64 = losses.into_iter().filter_map(of).sum();
            let refused = of("lost_queue").unwrap_or_default();
            let carried = of("rate_bps");
            let share = carried
                .zip(rate)
                .map(|(carried, rate)| 100.0 * carried / rate.as_bits_per_second() as f64);
            let node = |node: usize| plan.topology.nodes()[node].clone();
            Some([
                name.to_owned(),
                node(from),
                node(to),
                shown(carried.map(|bps| bps / 1e6), 3),
                shown(share, 1),
                shown(Some(packets), 0),
                shown(Some(100.0 * lost / (packets + refused)), 2),
            ])
        };
        ways.into_iter().filter_map(row)
    })
}
