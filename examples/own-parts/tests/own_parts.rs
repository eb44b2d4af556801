//! The parts do in the simulator what they say.

use fulmar_sim::scenario::{Document, points_with};
use fulmar_sim::{Experiment, ExperimentProgress, RunRecord, WorldOptions};
use own_parts::parts;

const HOP: &str = "[run]\nduration = '40s'\n[hop]\nrate = '6mbit'\ndelay = '20ms'\n";

fn run(text: &str) -> RunRecord {
    let document = Document::parse("own-parts.toml", &format!("{HOP}{text}")).expect("TOML");
    let experiment = Experiment {
        scenario: "own-parts.toml".to_owned(),
        points: points_with(&document, &parts()).expect("a sound scenario"),
        options: WorldOptions::default(),
    };
    let results = experiment.run(1, &ExperimentProgress::default());
    let record = results.expect("one thread").remove(0).runs.remove(0);
    assert_eq!(record.error, None);
    record
}

#[test]
fn rain_costs_the_rate_while_it_falls() {
    let bulk = "[flow]\ntransport = 'aerotp'\ntraffic = 'bulk'\nbytes = '100MB'\n";
    let dry = run(bulk).metrics.flow.goodput_bps.expect("it delivers");
    let wet = run(&format!("channel = 'rain'\n{bulk}"));
    let wet = wet.metrics.flow.goodput_bps.expect("it delivers");
    assert!(wet < 0.7 * dry, "{wet} of {dry}");
}

#[test]
fn a_camera_writes_as_it_says() {
    let flow = "[flow]\ntransport = 'aerotp'\nbytes = '100MB'\nsource = 'camera'\n";
    let record = run(flow);
    // Large ones come once a second, the others 24 times.
    let a_second = 30_000 + 24 * 3_000;
    let delivered = record.metrics.flow.delivered_bytes;
    assert!(
        delivered.abs_diff(40 * a_second) < 2 * a_second,
        "{delivered}"
    );
}

#[test]
fn a_transport_brings_all_over_a_lossy_link() {
    let flow = "[flow]\ntransport = 'windowed'\ntraffic = 'bulk'\nbytes = '3MB'\n";
    let clean = run(flow).metrics;
    let lossy = run(&format!("loss = '10%'\n{flow}")).metrics;
    for metrics in [&clean, &lossy] {
        assert_eq!(metrics.flow.delivered_bytes, 3_000_000);
    }
    assert_eq!(clean.wire_bytes.retransmission, 0);
    // Packets of 1500 octets carry 1468. A round fails if the packet or its answer is lost, in 19 cases of 100: for 2,044 packets 479
    // more are expected, 4 standard errors are 97.
    let again = lossy.wire_bytes.retransmission / 1500;
    assert!((382..=576).contains(&again), "{again}");
}

#[test]
fn one_rule_sends_symbols_where_more_than_one_in_twenty_is_lost() {
    let messages = |loss: &str| {
        let flow = "[flow]\ntransport = 'aerotp'\nmode = 'auto'\ntraffic = 'messages'\nsize = '200B'\n\
                    interval = '20ms'\ndeadline = '1s'\nbytes = '300kB'\ncontroller = 'one-rule'\n";
        run(&format!("loss = '{loss}'\n{flow}"))
            .metrics
            .wire_bytes
            .repair
    };
    let (few, many) = (messages("1%"), messages("10%"));
    assert!(
        many > 10 * few.max(1_000),
        "{few} and {many} octets of repair"
    );
}
