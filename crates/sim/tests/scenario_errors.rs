//! A scenario that cannot be used says where, which field, and what would be right.

use fulmar_sim::scenario::{Document, PointPlan, SWEEP_RUNS_MAX, points};

const GOOD: &str = "\
[hop]
rate = \"5mbit\"
[flow]
transport = \"udp\"
bytes = \"1MB\"
";

fn refusal(text: &str) -> String {
    let document = match Document::parse("my.toml", text) {
        Ok(document) => document,
        Err(error) => return error.to_string(),
    };
    points(&document)
        .expect_err("a mistake is in every text")
        .to_string()
}

#[test]
fn each_mistake_is_answered_with_its_place_and_a_remedy() {
    let with = |line: &str| format!("{GOOD}{line}\n");
    for (text, expected) in [
        (
            with("byts = 3"),
            "my.toml:6: `flow.byts`: is not a key here; did you mean `bytes`?",
        ),
        (
            with("[hopp]"),
            "my.toml:6: `hopp`: is not a key here; did you mean `hop`?",
        ),
        (
            with("mtu = 1500"),
            "my.toml:6: `flow.mtu`: `1500` has no unit",
        ),
        (with("mtu = \"9B\""), "must be 68B to 65535B"),
        (
            GOOD.replace("udp", "aerotp") + "adapt_power = true\n",
            "my.toml:6: `flow.adapt_power`: is for flows that follow the bit error rate; write adapt, too",
        ),
        (with("traffic = \"bulky\""), "did you mean `bulk`?"),
        (
            with("[run]\nruns = 0"),
            "my.toml:7: `run.runs`: `0` must be a whole number from 1",
        ),
        (with("[run]\nduration = \"5\""), "has no unit"),
        (
            with("[sweep]\n\"hop.ber\" = 3"),
            "`sweep.hop.ber`: must be a list",
        ),
        (
            with("[sweep]\n\"hop.bet\" = [3]"),
            "`hop.bet`: is not a key here; did you mean `ber`?",
        ),
        (
            with("[hop.forward]\nloss = \"101%\""),
            "my.toml:7: `hop.forward.loss`",
        ),
        (
            GOOD.replace("5mbit", "5mbps"),
            "my.toml:2: `hop.rate`: `5mbps` may count bits or bytes",
        ),
        (
            GOOD.replace("rate", "rat"),
            "my.toml:2: `hop.rat`: is not a key here; did you mean `rate`?",
        ),
        (
            GOOD.replace("rate = \"5mbit\"", ""),
            "my.toml:1: `hop.rate`: is missing; write rate = \"5Mbit/s\"",
        ),
        (
            GOOD.replace("[flow]", "[flwo]"),
            "my.toml:3: `flwo`: is not a key here; did you mean `flow`?",
        ),
        (
            with("[lan]\nrat = \"1gbit\""),
            "my.toml:7: `lan.rat`: is not a key here; did you mean `rate`?",
        ),
        (
            with("[hop.foward]\nloss = \"1%\""),
            "my.toml:6: `hop.foward`: is not a key here; did you mean `forward`?",
        ),
        (
            with("[run]\nruns = 0\nsede = 1"),
            "my.toml:8: `run.sede`: is not a key here; did you mean `seed`?",
        ),
        (GOOD.replace("\"udp\"", "\"upd\""), "did you mean `udp`?"),
        (
            String::from("[hop]\nrate = \"5mbit\"\n"),
            "`flow`: there must be 1 to",
        ),
    ] {
        let refusal = refusal(&text);
        assert!(
            refusal.contains(expected),
            "{refusal}\nshould say {expected}"
        );
    }
}

#[test]
fn copies_of_flows_are_counted_among_all_that_there_may_be() {
    let too_many = GOOD.replace("[flow]", "[flow]\ncount = 10001");
    assert!(refusal(&too_many).starts_with("my.toml:4: `flow.count`: "));
    let another = "[[flow]]\ntransport = \"udp\"\nbytes = \"1MB\"\n";
    let too_many = GOOD.replace("[flow]", "[[flow]]\ncount = 10000") + another;
    assert!(refusal(&too_many).contains("`flow`: there must be 1 to 10000, these are 10001"));
}

#[test]
fn copies_of_a_flow_are_the_flows_written_out() {
    let copies = GOOD.replace(
        "[flow]",
        "[flow]\ncount = 3\nspacing = \"2s\"\nstart = \"1s\"",
    );
    let each = |start: &str| {
        format!("[[flow]]\ntransport = \"udp\"\nbytes = \"1MB\"\nstart = \"{start}\"\n")
    };
    let (hop, _) = GOOD.split_at(GOOD.find("[flow]").expect("a flow"));
    let written_out = hop.to_owned() + &each("1s") + &each("3s") + &each("5s");
    let plan = |text: &str| {
        let document = Document::parse("my.toml", text).expect("TOML");
        PointPlan::read(&document).expect("a scenario")
    };
    assert_eq!(plan(&copies), plan(&written_out));
}

#[test]
fn a_path_on_the_command_line_that_leads_nowhere_names_the_step() {
    let single = "`7`: there is only 0";
    let two = GOOD.replace("[flow]", "[[hop]]\nrate = \"1mbit\"\n[flow]");
    let two = two.replacen("[hop]", "[[hop]]", 1);
    for (text, set, expected) in [
        (GOOD, "hop.7.ber=1e-4", single),
        (GOOD, "flow.7.mode=reliable", single),
        (&two, "hop.7.ber=1e-4", "`7`: there are 2, counted from 0"),
        (
            GOOD,
            "hpo.7.ber=1e-4",
            "`hpo`: is not a key here; did you mean `hop`?",
        ),
        (
            GOOD,
            "hop.0.bre=1",
            "`hop.bre`: is not a key here; did you mean `ber`?",
        ),
    ] {
        let mut document = Document::parse("my.toml", text).unwrap();
        let outcome = document.set(set).and_then(|()| points(&document));
        let refusal = outcome.expect_err(set).to_string();
        assert!(refusal.starts_with(&format!("--set {set}: ")), "{refusal}");
        assert!(
            refusal.contains(expected),
            "{refusal}\nshould say {expected}"
        );
    }
}

#[test]
fn options_of_another_transport_are_let_stand() {
    let text = format!("{GOOD}mode = \"nack-mack\"\nfec_words = 9\n");
    let document = Document::parse("my.toml", &text).unwrap();
    assert!(PointPlan::read(&document).is_ok());
}

#[test]
fn sweeps_are_crossed_and_pairs_are_zipped() {
    let text = format!(
        "{GOOD}[sweep]\n\"hop.ber\" = [0, 1e-5, 1e-4]\n\
         \"flow.bytes, run.seed\" = [[\"1MB\", 1], [\"2MB\", 7]]\n"
    );
    let points = points(&Document::parse("my.toml", &text).unwrap()).unwrap();
    assert_eq!(points.len(), 6);
    let varied: Vec<String> = points
        .iter()
        .map(|p| {
            p.varied
                .iter()
                .map(|(_, v)| v.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(varied[0], "1MB 1 0");
    assert_eq!(varied[5], "2MB 7 1e-4");
    assert_eq!(points[5].plan.run.seed, 7);
    assert!(points.iter().all(|p| !p.parameters.contains_key("sweep")));
}

#[test]
fn a_sweep_has_a_thousand_million_runs_and_not_one_more() {
    let with = |last: &str| {
        let rates: Vec<String> = (1..=1000)
            .map(|n| format!("[\"{n}e-9\", 1000000]"))
            .collect();
        let sweep = format!("\"hop.ber, run.runs\" = [{}{last}]", rates.join(", "));
        points(&Document::parse("my.toml", &format!("{GOOD}[sweep]\n{sweep}\n")).unwrap())
    };
    let runs = with("").map(|points| points.iter().map(|point| point.plan.run.runs).sum());
    assert_eq!(runs, Ok(SWEEP_RUNS_MAX));
    let past = with(", [\"1e-3\", 1]").unwrap_err();
    assert!(
        past.to_string().contains("are more than 1000000000 in all"),
        "{past}"
    );
}

#[test]
fn a_sweep_that_changes_nothing_is_refused() {
    let tcp = GOOD.replace("\"udp\"", "\"tcp\"");
    let own = "[flow.tcp]\npreset = \"enhanced\"\n";
    let sweep =
        "[sweep]\n\"hop.ber\" = [0, 1e-5]\n\"tcp.preset\" = [\"reference\", \"linux-like\"]\n";
    for (text, is_told) in [
        (format!("{tcp}{sweep}"), false),
        (format!("{tcp}{own}{sweep}"), true),
        (format!("{GOOD}{sweep}"), true),
    ] {
        let told = points(&Document::parse("my.toml", &text).unwrap());
        let told = told.err().map(|error| error.to_string());
        let names_it = told
            .as_ref()
            .is_some_and(|told| told.contains("`sweep.tcp.preset`: changes nothing"));
        assert_eq!(names_it, is_told, "{told:?}");
    }
}

#[test]
fn lists_of_lists_can_be_given_on_the_command_line() {
    let mut document = Document::parse("my.toml", GOOD).unwrap();
    document
        .set("sweep.flow.bytes, run.seed=[[1MB, 1], [\"2MB\", 7]]")
        .unwrap();
    let points = points(&document).unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!(points[1].plan.run.seed, 7);
}

#[test]
fn a_direction_can_differ_from_the_hop() {
    let text = format!("{GOOD}[hop.forward]\nloss = \"10%\"\n[hop.reverse]\nrate = \"1mbit\"\n");
    let plan = PointPlan::read(&Document::parse("my.toml", &text).unwrap()).unwrap();
    let hop = &plan.hops[0];
    assert!(hop.forward.loss.mean_loss().value() > 0.0);
    assert!(hop.reverse.loss.mean_loss().is_zero());
    assert_ne!(hop.forward.rate, hop.reverse.rate);
}

#[test]
fn mistakes_in_the_tables_of_tcp_are_answered_like_all_others() {
    let with = |line: &str| format!("{GOOD}{line}\n");
    let tcp = GOOD.replace("\"udp\"", "\"tcp\"");
    for (text, expected) in [
        (
            with("[tcp]\nsak = true"),
            "my.toml:7: `tcp.sak`: is not a key here; did you mean `sack`?",
        ),
        (
            tcp.clone() + "[flow.tcp]\nrto_min = \"200\"\n",
            "my.toml:7: `flow.tcp.rto_min`: `200` has no unit",
        ),
        (
            tcp.clone() + "[tcp]\npreset = \"new-reno\"\n",
            "did you mean `newreno-2005`?",
        ),
        (
            tcp.clone() + "[tcp]\nrto_max = \"1ms\"\n",
            "`tcp.rto_max`: must not be below rto_min or rto_initial",
        ),
        (
            with("[tcp]\nrto_max = \"1ms\""),
            "`tcp.rto_max`: must not be below rto_min or rto_initial",
        ),
        (
            with("[flow.tcp]\nrto_min = \"200\""),
            "my.toml:7: `flow.tcp.rto_min`: `200` has no unit",
        ),
        (
            with("framing = \"1B\"").replace("[flow]", "framing = \"1MB\"\n[flow]"),
            "`hop.framing`: `1000000B` must be at most 256B",
        ),
    ] {
        let refusal = refusal(&text);
        assert!(
            refusal.contains(expected),
            "{refusal}\nshould say {expected}"
        );
    }
}

#[test]
fn mistakes_about_lt_tcp_are_told_in_keys_that_there_are() {
    let with = |lines: &str| GOOD.replace("udp", "lt-tcp") + "[lt_tcp]\n" + lines;
    for (line, expected) in [
        (
            "rto_max = \"1ms\"",
            "`lt_tcp.rto_max`: must not be below rto_min or rto_initial",
        ),
        (
            "unit_min = \"10B\"",
            "`lt_tcp.unit_min`: must be 64B to 1446B (mtu - 40B - 14B)",
        ),
        (
            "send_buffer = \"10B\"",
            "`lt_tcp.send_buffer`: must be 1460B (mtu - 40B) to 1073741824B",
        ),
        (
            "granularity = 200\nunits_max = 10",
            "`lt_tcp.units_max`: must be 200 (granularity) to 160",
        ),
    ] {
        let refusal = refusal(&with(line));
        assert!(
            refusal.contains(expected),
            "{refusal}\nshould say {expected}"
        );
    }
}

#[test]
fn mistakes_about_link_layers_are_answered_like_all_others() {
    let with = |line: &str| GOOD.replace("[flow]", &format!("{line}\n[flow]"));
    for (text, expected) in [
        (
            with("link = \"plian\""),
            "my.toml:3: `hop.link`: `plian` is not known; did you mean `plain`?",
        ),
        (
            with("[hop.link]\nlayr = \"plain\""),
            "my.toml:4: `hop.link.layr`: is not a key here; did you mean `layer`?",
        ),
        (
            with("[hop.link]"),
            "my.toml:3: `hop.link.layer`: is missing; write layer = ",
        ),
        (
            with("[hop.red]\nmin = 5\nmax = 15"),
            "`hop.red`: needs a link layer below its queue; write link = ",
        ),
        (
            with("link = \"plain\"\naqm = \"codel\""),
            "`hop.aqm`: manages the queue of a hop without a link layer; write [hop.red]",
        ),
        (
            with("aqm = \"fq\""),
            "my.toml:3: `hop.aqm`: `fq` does not describe a managed queue: write `codel`",
        ),
        (
            with("policer = \"1mbit\""),
            "my.toml:3: `hop.policer`: `1mbit` does not describe a policer: write `10Mbit/s,15kB`",
        ),
        (
            with("link = \"plain\"\n[hop.red]\nmin = 5\nmax = 5"),
            "my.toml:6: `hop.red.max`: red.max is 5; allowed is above `min`, 5",
        ),
        (
            with("link = \"plain\"\n[hop.red]\nmin = 5"),
            "`hop.red.max`: is missing; write max = ",
        ),
    ] {
        let refusal = refusal(&text);
        assert!(
            refusal.contains(expected),
            "{refusal}\nshould say {expected}"
        );
    }
}

#[test]
fn copies_that_cannot_be_say_beside_what_and_what_would_be_right() {
    let aerotp = |lines: &str| GOOD.replace("udp", "aerotp") + lines;
    for (text, expected) in [
        (
            aerotp("mode = \"quasi-reliable\"\ncopies = 2\nfec_block = \"20+4\"\n"),
            "my.toml:7: `flow.copies`: cannot be combined with fec_block, which protects the same TPDUs; leave one of them out",
        ),
        (
            aerotp("copies = 2\nadapt = \"2ms\"\n"),
            "my.toml:6: `flow.copies`: cannot be combined with adapt, which weighs TPDUs that are sent once",
        ),
        (
            aerotp("mode = \"datagram\"\ncopies = 2\n"),
            "my.toml:7: `flow.copies`: is for modes with a connection, which delivers one of the copies; unreliable is",
        ),
        (
            aerotp("copies = 101\n"),
            "my.toml:6: `flow.copies`: `101` must be a whole number from 1 to 100",
        ),
    ] {
        let problem = refusal(&text);
        assert!(
            problem.contains(expected),
            "{problem}\ninstead of\n{expected}"
        );
    }
}

#[test]
fn a_rate_that_cannot_be_found_says_who_can_and_what_would_be_right() {
    let with = |line: &str| format!("{GOOD}{line}\n");
    for (text, expected) in [
        (
            with("send_rate = \"found\""),
            "my.toml:6: `flow.send_rate`: `found` is for aerotp and gateway: a TCP finds its rate without",
        ),
        (
            GOOD.replace("udp", "aerotp") + "send_rate = \"found\"\nmode = \"datagram\"\n",
            "my.toml:6: `flow.send_rate`: `found` needs the receiver's reports, and in the mode datagram",
        ),
        (
            GOOD.replace("udp", "aerotp") + "send_rate = \"found\"\nmack_style = \"listed\"\n",
            "write mack_style = \"cumulative\"",
        ),
        (
            GOOD.replace("udp", "aerotp") + "rate = \"found\"\n",
            "my.toml:6: `flow.rate`: is what the application writes in a second; for the transport to \
             find its rate, write send_rate = \"found\"",
        ),
        (
            with("share = \"hog\""),
            "my.toml:6: `flow.share`: `hog` is not known",
        ),
    ] {
        let refusal = refusal(&text);
        assert!(
            refusal.contains(expected),
            "{refusal}\nshould say {expected}"
        );
    }
}

const GRAPH: &str = "\
[[hop]]
from = \"air\"
to = \"relay\"
rate = \"5mbit\"
[[hop]]
name = \"beam\"
from = \"relay\"
to = \"ground\"
rate = \"5mbit\"
[[hop]]
from = \"air\"
to = \"ground\"
rate = \"5mbit\"
cost = 9
[[flow]]
from = \"air\"
to = \"ground\"
transport = \"gateway\"
bytes = \"1MB\"
";

fn assert_refused(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        let refusal = refusal(text);
        assert!(
            refusal.contains(expected),
            "{refusal}\nshould say {expected}"
        );
    }
}

#[test]
fn hops_that_make_no_graph_say_which_key_and_what_to_write() {
    let with = |line: &str| format!("{GRAPH}{line}\n");
    let changed = |from: &str, to: &str| GRAPH.replacen(from, to, 1);
    assert!(points(&Document::parse("my.toml", GRAPH).expect("TOML")).is_ok());
    assert_refused(&[
        (
            changed("to = \"relay\"", "to = \"air\""),
            "my.toml:3: `hop.0.to`: is the node where the hop begins",
        ),
        (
            changed("from = \"air\"\n", ""),
            "`hop.0.from`: is missing; write from and to for every hop",
        ),
        (
            changed("name = \"beam\"", "name = \"ground\""),
            "`hop.1.name`: `ground` is the name of another hop or of a node",
        ),
        (
            changed("cost = 9", "cost = 0"),
            "`hop.2.cost`: `0` must be a whole number from 1",
        ),
        (with("[lan]\nrate = \"1gbit\""), "`lan`: is for a chain"),
        (
            with("[[change]]\nat = \"1s\"\nhop = \"bean\"\nloss = \"1%\""),
            "`change.0.hop`: `bean` is no hop; did you mean `beam`?",
        ),
        (
            with("[[change]]\nat = \"1s\"\nhop = 3\nloss = \"1%\""),
            "`change.0.hop`: `3` must be a whole number from 0 to 2",
        ),
        (
            GOOD.replace("[flow]", "[flow]\nto = \"ground\""),
            "`flow.to`: is for hops that have from and to",
        ),
        (
            GOOD.replace("[hop]", "[hop]\ncost = 3"),
            "`hop.cost`: is for hops of a graph",
        ),
    ]);
}

#[test]
fn flows_that_a_graph_cannot_carry_say_which_key_and_what_to_write() {
    let with = |line: &str| format!("{GRAPH}{line}\n");
    let changed = |from: &str, to: &str| GRAPH.replacen(from, to, 1);
    assert_refused(&[
        (
            changed("[[flow]]\nfrom = \"air\"", "[[flow]]\nfrom = \"aire\""),
            "`flow.0.from`: `aire` is no node; did you mean `air`?",
        ),
        (
            changed("[[flow]]\nfrom = \"air\"\n", "[[flow]]\n"),
            "`flow.0.from`: is missing; write one of the nodes: air, relay, ground",
        ),
        (
            changed("[[flow]]\nfrom = \"air\"", "[[flow]]\nfrom = \"ground\""),
            "`flow.0.to`: is the node that sends",
        ),
        (
            with("via = [\"bean\"]"),
            "`flow.0.via`: `bean` is no node and no hop; did you mean `beam`?",
        ),
        (
            with("via = [\"beam\", \"relay\"]"),
            "`flow.0.via`: no path from `air` to `ground` passes `relay` there without passing a node twice",
        ),
        (
            changed(
                "from = \"air\"\nto = \"ground\"",
                "from = \"sea\"\nto = \"ship\"",
            )
            .replacen("[[flow]]\nfrom = \"air\"", "[[flow]]\nfrom = \"sea\"", 1),
            "no hops lead from `sea` to `ground`; write a [[hop]] that joins them",
        ),
        (
            with("direction = \"reverse\""),
            "`flow.0.direction`: is for a chain",
        ),
        (
            with("[[flow.path]]\nvia = [\"beam\"]\n[[flow.path]]\nvia = [\"relay\"]"),
            "`flow.0.path.1.via`: gives the same hops as a path before",
        ),
        (
            with("via = [\"beam\"]\n[[flow.path]]\nvia = [\"beam\"]"),
            "`flow.0.via`: stands beside [[flow.path]]; write it in each path",
        ),
        (
            with("[[flow.path]]\ncost = 1"),
            "`flow.0.path.0.cost`: must be 0 for the first path",
        ),
        (
            with(
                "[[flow.path]]\n[[flow.path]]\nvia = [\"hop-2\"]\n[[flow]]\nfrom = \"ground\"\nto = \"air\"\n\
                  transport = \"gateway\"\nbytes = \"1MB\"",
            ),
            "`flow`: cannot have different paths between the same two gateways",
        ),
    ]);
}
