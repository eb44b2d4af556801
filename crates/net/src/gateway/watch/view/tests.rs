use super::*;
use crate::gateway::watch::losses::LossFigures;
use crate::gateway::watch::metrics;
use crate::gateway::watch::status::{
    CauseFigures, CustodyFor, DamageFigures, DamagedDirection, PathFigures, TunnelReport,
};
use crate::gateway::watch::tally::{Tally, Window, tests::status};

fn figures(view: &View) -> Vec<&Figure> {
    let peers = view.peers.iter().flat_map(|peer| &peer.groups);
    let groups = view.groups.iter().chain(peers);
    let classes = view.classes.iter().flat_map(|class| &class.figures);
    groups
        .flat_map(|group| &group.figures)
        .chain(classes)
        .collect()
}

#[test]
fn every_figure_that_is_shown_is_of_the_registry() {
    let snapshot = Snapshot {
        status: status(1.0, 1),
        ..Snapshot::default()
    };
    let view = View::of(&snapshot);
    let shown = GATEWAY.iter().chain(PEER).map(|(_, shown)| shown.len());
    assert_eq!(figures(&view).len(), shown.sum::<usize>() + CLASS.len());
}

#[test]
fn the_drawing_ends_with_the_figures_beside_it_and_their_span_is_told() {
    let (first, last) = (status(1.0, 10), status(4.0, 20));
    let window = Window::between(&Tally::of(&first), &Tally::of(&last));
    let snapshot = Snapshot {
        sequence: 3,
        status: last,
        window,
    };
    let view = View::of(&snapshot);
    assert_eq!(view.window_seconds, Some(3.0));
    let point = view.peers[0].point.as_ref().expect("a window");
    assert_eq!(point[0], Some(4.0));
    let goodput = figures(&view)
        .into_iter()
        .find(|figure| figure.series == "fulmar_goodput_delivered_bits_per_second")
        .and_then(|figure| figure.value)
        .expect("it is shown");
    assert_eq!(point[1], Some(goodput.as_f64().round()));
    let young = Snapshot {
        window: None,
        ..snapshot
    };
    let young = View::of(&young);
    assert_eq!((young.window_seconds, &young.peers[0].point), (None, &None));
}

#[test]
fn no_two_figures_of_a_picture_have_one_name() {
    // A count up to a report, and the same count until now, differ: under one name one of them would look wrong.
    let snapshot = Snapshot {
        status: status(1.0, 1),
        ..Snapshot::default()
    };
    let view = View::of(&snapshot);
    let of_gateway = view.groups.iter().flat_map(|group| &group.figures);
    let gateway: Vec<&str> = of_gateway.map(|figure| figure.label.as_str()).collect();
    for group in &view.peers[0].groups {
        let labels: Vec<&str> = group.figures.iter().map(|f| f.label.as_str()).collect();
        let each: std::collections::BTreeSet<_> = labels.iter().chain(&gateway).collect();
        assert_eq!(each.len(), labels.len() + gateway.len(), "{labels:?}");
    }
}

#[test]
fn a_figure_is_the_sum_of_the_series_with_its_labels() {
    let (first, last) = (status(1.0, 10), status(11.0, 20));
    let window = Window::between(&Tally::of(&first), &Tally::of(&last));
    let snapshot = Snapshot {
        sequence: 3,
        status: last,
        window,
    };
    let object = metrics::object(&snapshot);
    let view = View::of(&snapshot);
    let mut found = 0;
    for figure in figures(&view) {
        let (name, labels) = figure
            .series
            .split_once('{')
            .unwrap_or((&figure.series, ""));
        let labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
        let is_meant = |series: &str| {
            let (other, all) = series.split_once('{').unwrap_or((series, ""));
            other == name && labels.iter().all(|label| all.contains(label))
        };
        let of_object = object.iter().filter(|(series, _)| is_meant(series));
        let values: Vec<f64> = of_object.map(|(_, value)| value.as_f64()).collect();
        let sum = (!values.is_empty()).then(|| values.iter().sum::<f64>());
        assert_eq!(figure.value.map(Value::as_f64), sum, "{figure:?}");
        found += usize::from(sum.is_some());
    }
    assert!(found > 20, "{found} figures have values");
}

#[test]
fn what_is_kept_is_told_for_the_gateway_at_the_end_of_its_way() {
    let mut status = status(1.0, 1);
    let peer = &mut status.peers[0];
    let name = peer.name.clone();
    let kept = |gateway: &str, kept_bytes| CustodyFor {
        gateway: gateway.to_owned(),
        flows: 1,
        kept_bytes,
    };
    peer.custody = vec![kept("far", 3_000_000), kept(&name, 500)];
    let snapshot = Snapshot {
        status,
        ..Snapshot::default()
    };
    let view = View::of(&snapshot);
    let said = &view.peers[0].says;
    assert!(
        said.contains("In custody: 3.00 MB for far behind it, 500 B for it."),
        "{said}"
    );
    let object = metrics::object(&snapshot);
    let series = format!("fulmar_custody_held_bytes{{peer=\"{name}\",gateway=\"far\"}}");
    let found: Vec<_> = object.iter().filter(|(name, _)| **name == series).collect();
    assert_eq!(found.len(), 1, "{series}");
    let all = figures(&view)
        .into_iter()
        .find(|it| it.label == "kept for it");
    assert_eq!(
        all.and_then(|it| it.value).map(Value::as_f64),
        Some(3_000_500.0)
    );
}

#[test]
fn damaged_datagrams_are_figures_of_their_own_in_both_directions() {
    let mut status = status(1.0, 1);
    let way = |mended_datagrams| DamagedDirection {
        bit_error_ratio: Some(1e-4),
        mended_datagrams,
        beyond_repair_datagrams: mended_datagrams / 10,
        ..DamagedDirection::default()
    };
    status.peers[0].damage = Some(DamageFigures {
        words: 3,
        outward: way(70),
        inward: way(40),
    });
    let view = View::of(&Snapshot {
        status,
        ..Snapshot::default()
    });
    let groups = &view.peers[0].groups;
    let of = |title: &str, label: &str| {
        let group = groups.iter().find(|group| group.title == title);
        let figures = &group.expect("a group").figures;
        let figure = figures.iter().find(|figure| figure.label == label);
        figure.expect("a figure").value.map(Value::as_f64)
    };
    for (title, mended) in [
        ("Repair from here to the peer", 70.0),
        ("Repair from the peer to here", 40.0),
    ] {
        assert_eq!(of(title, "arrived damaged, mended"), Some(mended));
        assert_eq!(of(title, "damaged beyond repair"), Some(mended / 10.0));
    }
    assert_eq!(of("From here to the peer", "wrong bits"), Some(1e-4));
    assert_eq!(of("From the peer to here", "wrong bits"), Some(1e-4));
}

#[test]
fn a_tunnel_is_shown_under_its_peer() {
    let mut status = status(1.0, 1);
    let of = |peer: &str, device: &str, sent_packets| TunnelReport {
        peer: peer.to_owned(),
        device: device.to_owned(),
        sent_packets,
        dropped_packets: BTreeMap::from([("source", 2), ("kernel", 1)]),
        ..TunnelReport::default()
    };
    let name = status.peers[0].name.clone();
    status.tunnels = vec![of(&name, "tunnel0", 5), of("another", "tunnel1", 7)];
    let view = View::of(&Snapshot {
        status,
        ..Snapshot::default()
    });
    let groups = view.peers[0].groups.iter();
    let tunnels: Vec<&Group> = groups.filter(|it| it.title.contains("Tunnel")).collect();
    let [tunnel] = tunnels[..] else {
        panic!("{tunnels:?}");
    };
    assert_eq!(tunnel.title, "Tunnel tunnel0");
    let values: Vec<_> = tunnel.figures.iter().map(|it| it.value).collect();
    let count = |count| Some(Value::Count(count));
    assert_eq!(values, [count(5), count(0), count(3)]);
}

#[test]
fn a_share_of_what_passed_lately_says_that_nothing_did() {
    let view = View::of(&Snapshot {
        status: status(1.0, 1),
        ..Snapshot::default()
    });
    let all = figures(&view);
    let lost = all.iter().find(|figure| figure.label == "lost on the wire");
    let lost = lost.expect("a figure");
    assert_eq!((lost.value, lost.text.as_str()), (None, "no data lately"));
}

#[test]
fn a_peer_with_several_paths_names_each_with_its_state_rate_and_round_trip() {
    let mut status = status(1.0, 1);
    let path = |path, state, rtt_seconds, down_seconds| PathFigures {
        path,
        cost: path,
        state,
        down_seconds,
        rtt_seconds,
        ..PathFigures::default()
    };
    status.peers[0].paths = vec![
        path(0, "up", Some(0.04), None),
        path(1, "down", Some(0.3), Some(2.0)),
        path(2, "tried", None, None),
    ];
    let view = View::of(&Snapshot {
        status: status.clone(),
        ..Snapshot::default()
    });
    let said = "Paths: 0 up, round trip 40.0 ms; 1 down at cost 1 for 2.00 s; 2 tried at cost 2.";
    assert!(view.peers[0].says.contains(said), "{view:?}");
    let random = CauseFigures {
        ratio: 0.75,
        low_ratio: 0.7,
        high_ratio: 0.8,
    };
    status.peers[0].paths[0] = PathFigures {
        outages: 2,
        outage_seconds: 3.5,
        losses: Some(LossFigures {
            sent_packets: 1_000,
            lost_packets: 40,
            mended_packets: 0,
            causes: [("random", random)].into(),
        }),
        ..path(0, "up", Some(0.04), None)
    };
    let view = View::of(&Snapshot {
        status: status.clone(),
        ..Snapshot::default()
    });
    let said = "0 up, round trip 40.0 ms, lost 40 packets (at random 75 %), was down twice for 3.50 s in all;";
    assert!(view.peers[0].says.contains(said), "{view:?}");
    status.peers[0].paths.clear();
    let view = View::of(&Snapshot {
        status,
        ..Snapshot::default()
    });
    assert!(!view.peers[0].says.contains("Paths"), "there is one");
}

#[test]
fn a_peer_that_is_down_says_so() {
    let mut status = status(1.0, 1);
    status.peers[0].link = "down".to_owned();
    status.peers[0].down_seconds = Some(12.3);
    let view = View::of(&Snapshot {
        status,
        ..Snapshot::default()
    });
    assert!(view.peers[0].says.contains("for 12.30 s"), "{view:?}");
}
