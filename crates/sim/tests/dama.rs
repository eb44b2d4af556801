//! A hop whose forward direction has to ask for capacity, as a scenario describes it.

use crate::fixture::run;
use fulmar_sim::report::record::Metrics;
use fulmar_sim::scenario::{Document, PointPlan};

/// The return link of the SLACP tests, with one file of 100 kB over TCP.
fn scenario(dama: &str) -> String {
    format!(
        "[run]\nduration = \"10min\"\n\
         [[hop]]\nrate = \"512kbit\"\ndelay = \"250ms\"\n\
         [hop.forward]\nrate = \"128kbit\"\nqueue = \"28.8kB\"\ndama = \"{dama}\"\n\
         [[flow]]\ntransport = \"tcp\"\nbytes = \"100kB\"\nmtu = \"1450B\"\n\
         [tcp]\npreset = \"enhanced\"\n"
    )
}

fn seconds(dama: &str) -> f64 {
    let points = run(&scenario(dama), &[]);
    let metrics = &points[0].runs[0].metrics;
    assert_eq!(metrics.end_reason, "completed");
    metrics
        .flow
        .last_delivery_s
        .expect("everything was delivered")
}

#[test]
fn a_file_takes_longer_the_more_often_its_sender_has_to_ask() {
    let (constant, rate, volume) = (seconds("cra"), seconds("rbdc"), seconds("vbdc"));
    // 100 kB are 6.25 s at 128 kbit/s; the window opens from one segment over round trips of 0.5 s.
    assert!((6.25..20.0).contains(&constant), "{constant}");
    assert!(rate > constant + 0.5, "{rate} against {constant}");
    assert!(volume > rate, "{volume} against {rate}");
}

#[test]
fn demand_assignment_is_a_matter_of_one_direction() {
    let both = "[[hop]]\nrate = \"128kbit\"\ndama = \"rbdc\"\n\
                [[flow]]\ntransport = \"udp\"\nbytes = \"1kB\"\n";
    let document = Document::parse("dama.toml", both).expect("valid TOML");
    let refused = PointPlan::read(&document).unwrap_err().to_string();
    assert!(refused.contains("dama"), "{refused}");
    let document = Document::parse("dama.toml", &scenario("rbcd")).expect("valid TOML");
    let refused = PointPlan::read(&document).unwrap_err().to_string();
    assert!(refused.contains("`cra`, `rbdc` or `vbdc`"), "{refused}");
}

/// 100 packets from a terminal, at half of its return link's rate, with a link layer.
fn repaired(layer: &str, dama: &str, loss: &str) -> Metrics {
    let text = format!(
        "[run]\nduration = \"10min\"\n\
         [[hop]]\nrate = \"512kbit\"\ndelay = \"250ms\"\nlink = \"{layer}\"\n\
         ip_queue = \"200 packets\"\n\
         [hop.forward]\nrate = \"128kbit\"\nqueue = \"14.4kB\"\ndama = \"{dama}\"\nloss = \"{loss}\"\n\
         [[flow]]\ntransport = \"udp\"\ntraffic = \"constant-rate\"\nrate = \"64kbit\"\n\
         write = \"1000B\"\nbytes = \"100kB\"\n"
    );
    run(&text, &[]).remove(0).runs.remove(0).metrics
}

const REPAIRING: [&str; 3] = ["ll-arq", "selective-repeat", "ll-harq"];

#[test]
fn what_waits_for_capacity_is_not_taken_for_lost() {
    for layer in REPAIRING {
        for dama in ["cra", "rbdc", "vbdc"] {
            let metrics = repaired(layer, dama, "none");
            let link = metrics.link.expect("the hop has a link layer");
            assert_eq!(metrics.wire_loss.total(), 0, "{layer}, {dama}");
            assert_eq!(link.released_packets, 100, "{layer}, {dama}: {link:?}");
            let in_vain = link.frames_again + link.frames_parity;
            assert_eq!(in_vain, 0, "{layer}, {dama}: {link:?}");
        }
    }
}

#[test]
fn what_is_lost_on_the_way_to_a_terminals_peer_comes_again_once_for_each_loss() {
    for dama in ["cra", "rbdc", "vbdc"] {
        for layer in ["ll-arq", "selective-repeat"] {
            let metrics = repaired(layer, dama, "10%");
            let link = metrics.link.expect("the hop has a link layer");
            assert_eq!(link.released_packets, 100, "{layer}, {dama}: {link:?}");
            let lost = metrics.wire_loss.total();
            assert!(lost > 0, "{layer}, {dama}");
            assert_eq!(link.frames_again, lost, "{layer}, {dama}: {link:?}");
        }
        // 0.1 of all frames are lost, and a block fails twice in 0.15 x 0.01 of the cases; but its
        // margin starts at nothing, so some of the first fail: four blocks of two packets.
        let metrics = repaired("ll-harq", dama, "10%");
        let link = metrics.link.expect("the hop has a link layer");
        assert!(link.lost_packets <= 8, "{dama}: {link:?}");
        assert!(
            link.recovered_by_arq + link.recovered_by_parity > 0,
            "{dama}: {link:?}"
        );
    }
}
