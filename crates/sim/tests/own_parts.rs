//! Parts of one's own in the simulator: a channel, a source of traffic and a controller of repair, by their names.

use fulmar_sim::own::{
    ByteCount, ChannelLaw, ControllerView, FlightFate, OwnChannel, OwnRepair, OwnTraffic,
    PacketFlight, PlannedWrite, RepairController, RepairPlan, Rng, SourceView, TrafficSource,
};
use fulmar_sim::scenario::points_with;
use fulmar_sim::{
    Document, Experiment, ExperimentProgress, OwnParts, RunRecord, SettingsError, WorldOptions,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Loses each packet with the probability of `loss = "10%"`, and holds the others back for a while.
#[derive(Debug)]
struct OneInTen {
    rng: Rng,
    later: Duration,
}

impl ChannelLaw for OneInTen {
    fn fly(&mut self, _: PacketFlight) -> FlightFate {
        FlightFate {
            lost: self.rng.chance(0.1),
            later: self.later,
            ..FlightFate::ARRIVES
        }
    }
}

/// Writes 700 octets every 10 ms, nine times, and notes what it was shown.
#[derive(Debug)]
struct NineWrites {
    views: Arc<Mutex<Vec<SourceView>>>,
}

impl TrafficSource for NineWrites {
    fn next_write(&mut self, view: SourceView) -> Option<PlannedWrite> {
        self.views.lock().expect("one thread").push(view);
        (view.written < ByteCount(9 * 700)).then_some(PlannedWrite {
            after: 10 * MS,
            len: ByteCount(700),
        })
    }
}

/// Always the same plan; notes the loss that it was shown last.
#[derive(Debug)]
struct Always {
    plan: RepairPlan,
    loss: Arc<Mutex<u64>>,
}

impl RepairController for Always {
    fn choose(&mut self, view: &ControllerView) -> Option<RepairPlan> {
        *self.loss.lock().expect("one thread") = view.seen.loss.millionths();
        Some(self.plan)
    }
}

fn read(text: &str, own: &OwnParts) -> Result<Experiment, SettingsError> {
    let document = Document::parse("own.toml", text)?;
    Ok(Experiment {
        scenario: "own.toml".to_owned(),
        points: points_with(&document, own)?,
        options: WorldOptions::default(),
    })
}

fn run(text: &str, own: &OwnParts) -> RunRecord {
    let experiment = read(text, own).expect("a sound scenario");
    let progress = ExperimentProgress::default();
    let mut results = experiment.run(1, &progress).expect("one thread");
    let record = results.remove(0).runs.remove(0);
    assert_eq!(record.error, None);
    record
}

fn channel(later: Duration) -> OwnParts {
    let make = move |rng: &Rng| OneInTen {
        rng: rng.clone(),
        later,
    };
    OwnParts {
        channels: vec![OwnChannel::new("one-in-ten", make)],
        ..OwnParts::default()
    }
}

const HOP: &str = "[run]\nduration = \"60s\"\n[hop]\nrate = \"8mbit\"\ndelay = \"20ms\"\n";
const DATAGRAMS: &str = "[flow]\ntransport = \"udp\"\ntraffic = \"constant-rate\"\nrate = \"1mbit\"\n\
                         write = \"1000B\"\nbytes = \"2MB\"\n";

#[test]
fn a_channel_of_ones_own_stands_where_the_scenario_names_it() {
    let own = channel(7 * MS);
    let both = run(&format!("{HOP}channel = \"one-in-ten\"\n{DATAGRAMS}"), &own);
    // 2,000 datagrams, one in ten lost: 4 standard errors are 54.
    assert!(both.metrics.wire_loss.loss.abs_diff(200) < 54, "{both:?}");
    // 1028 octets at 8 Mbit/s take 1.028 ms, and 20 ms and 7 ms come on top.
    let delay = both.metrics.flow.delay_p50_s.expect("they arrive");
    assert!((delay - 0.028_028).abs() < 1e-6, "{delay}");
    let back = format!("{HOP}reverse = {{ channel = \"one-in-ten\" }}\n{DATAGRAMS}");
    assert_eq!(run(&back, &own).metrics.wire_loss.loss, 0);
    // Nobody knows the capacity of a law that only its author knows.
    assert_eq!(both.metrics.efficiency, None);
}

#[test]
fn a_part_of_ones_own_is_named_in_errors_with_those_there_are() {
    let text = |key: &str| format!("{HOP}channel = \"{key}\"\n{DATAGRAMS}");
    let wrong = read(&text("rain"), &channel(MS)).expect_err("there is no such channel");
    let wrong = wrong.to_string();
    assert!(
        wrong.contains("no channel `rain`") && wrong.contains("one-in-ten"),
        "{wrong}"
    );
    let wrong = read(&text("rain"), OwnParts::NONE)
        .expect_err("there is none")
        .to_string();
    assert!(wrong.contains("none is given"), "{wrong}");
    assert!(read(&text("none"), OwnParts::NONE).is_ok());
}

#[test]
fn a_source_of_ones_own_writes_when_it_says_and_ends_when_it_says() {
    for transport in ["udp", "aerotp", "tcp"] {
        let views = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&views);
        let make = move |_: &Rng| NineWrites {
            views: Arc::clone(&kept),
        };
        let own = OwnParts {
            sources: vec![OwnTraffic::new("nine", make)],
            ..OwnParts::default()
        };
        let flow =
            format!("[flow]\ntransport = \"{transport}\"\nbytes = \"1MB\"\nsource = \"nine\"\n");
        let record = run(&format!("{HOP}{flow}"), &own);
        let metrics = &record.metrics;
        assert!(metrics.completed, "{transport}: {metrics:?}");
        assert_eq!(metrics.flow.delivered_bytes, 9 * 700, "{transport}");
        let views = views.lock().expect("one thread");
        let times: Vec<u64> = views
            .iter()
            .map(|view| view.now.as_nanos() / 1_000_000)
            .collect();
        assert_eq!(
            times,
            [0, 10, 20, 30, 40, 50, 60, 70, 80, 90],
            "{transport}"
        );
        // 8 Mbit/s takes each write at once, as soon as there is a connection.
        let waiting = views.iter().skip(6).map(|view| view.waiting.0);
        assert_eq!(waiting.max(), Some(0), "{transport}");
    }
}

#[test]
fn a_controller_of_ones_own_decides_what_is_sent_ahead() {
    let messages = "loss = \"10%\"\n[flow]\ntransport = \"aerotp\"\nmode = \"auto\"\ntraffic = \"messages\"\n\
                    size = \"200B\"\ninterval = \"20ms\"\ndeadline = \"1s\"\nbytes = \"400kB\"\noverhead = \"100%\"\n\
                    deliver = \"all\"\ncontroller = \"always\"\n";
    let sent = |ahead_eighths: u8| {
        let loss = Arc::new(Mutex::new(0));
        let kept = Arc::clone(&loss);
        let plan = RepairPlan {
            ahead_eighths,
            ..RepairPlan::PLAIN
        };
        let make = move |_: &Rng| Always {
            plan,
            loss: Arc::clone(&kept),
        };
        let own = OwnParts {
            controllers: vec![OwnRepair::new("always", make)],
            ..OwnParts::default()
        };
        let record = run(&format!("{HOP}{messages}"), &own);
        assert!(record.metrics.completed);
        let loss = *loss.lock().expect("one thread");
        assert!((60_000..140_000).contains(&loss), "{loss} millionths");
        record.metrics.wire_bytes.repair
    };
    // Half a symbol for each of 2,000 messages of 200 octets; a goal of a second asks for none.
    let (none, half) = (sent(0), sent(4));
    let more = half - none;
    assert!(
        (150_000..300_000).contains(&more),
        "{none} and {half} octets of repair"
    );
}

#[test]
fn a_controller_without_a_goal_is_refused() {
    let own = OwnParts {
        controllers: vec![OwnRepair::new("always", |_| Always {
            plan: RepairPlan::PLAIN,
            loss: Arc::default(),
        })],
        ..OwnParts::default()
    };
    let text = format!("{HOP}{DATAGRAMS}controller = \"always\"\n");
    let wrong = read(&text, &own).expect_err("udp has no goal").to_string();
    assert!(wrong.contains("for a goal of an aerotp flow"), "{wrong}");
}
