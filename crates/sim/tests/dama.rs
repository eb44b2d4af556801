//! A hop whose forward direction has to ask for capacity, as a scenario describes it.

mod fixture;

use fixture::run;
use fulmar_sim::scenario::{Document, Plan};

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
    let refused = Plan::read(&document).unwrap_err().to_string();
    assert!(refused.contains("dama"), "{refused}");
    let document = Document::parse("dama.toml", &scenario("rbcd")).expect("valid TOML");
    let refused = Plan::read(&document).unwrap_err().to_string();
    assert!(refused.contains("`cra`, `rbdc` or `vbdc`"), "{refused}");
}
