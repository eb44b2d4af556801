//! Hops with link layers: what the layer does shows in the flows and in the measures of the hop.
//!
//! Every expectation follows from the scenario by arithmetic, or holds for every seed.

use crate::fixture;
use fulmar_sim::report::record::RunRecord;

fn one_run(text: &str) -> RunRecord {
    let mut results = fixture::run(text, &[]);
    results.remove(0).runs.remove(0)
}

/// 1000 octets of payload in 1,028 of packet.
const UDP: &str = r#"
[run]
duration = "60s"
[[hop]]
rate = "10mbit"
delay = "10ms"
queue = "unlimited"
link = "plain"
[[flow]]
transport = "udp"
traffic = "constant-rate"
rate = "4mbit"
write = "1000B"
bytes = "1MB"
"#;

#[test]
fn a_plain_hop_takes_a_packets_time_on_the_link_and_its_delay() {
    let run = one_run(UDP);
    let link = run.metrics.link.expect("the hop has a link layer");
    assert!(run.metrics.completed);
    assert_eq!(
        (link.offered_packets, link.released_packets),
        (1_000, 1_000)
    );
    assert_eq!((link.frames_data, link.lost_packets), (1_000, 0));
    // 1000 + 8 UDP + 20 network + 5 of the frame, at 10 Mbit/s, and 10 ms.
    let expected = 1_033.0 * 8.0 / 10e6 + 0.010;
    let mean = link.latency_mean_s.expect("packets were released");
    // Rounded up to whole nanoseconds.
    assert!((mean - expected).abs() < 2e-9, "{mean}");
    assert_eq!(run.hops.len(), 2);
    assert_eq!(run.hops[1].direction, "reverse");
    assert_eq!(run.hops[1].link.offered_packets, 0);
}

#[test]
fn a_plain_hop_drops_damaged_frames_and_repairs_nothing() {
    let run = one_run(&UDP.replace("delay", "loss = \"10%\"\nber = \"1e-5\"\ndelay"));
    let link = run.metrics.link.expect("the hop has a link layer");
    // 1 - 0.9 (1 - 1e-5)^(8 x 1033) = 0.171; standard deviation of 1000 draws 0.012, four of them.
    let residual = link.residual_loss.expect("packets were offered");
    assert!((residual - 0.171).abs() < 0.048, "{residual}");
    assert!(link.frames_rejected > 0, "damage reaches the frame check");
    assert_eq!(run.metrics.flow.corrupt_bytes, 0);
}

#[test]
fn packets_wait_above_the_link_where_the_queue_drops_and_marks_them() {
    let crowded = UDP
        .replace("4mbit", "20mbit")
        .replace("queue = \"unlimited\"", "queue = \"50 packets\"");
    let link = one_run(&crowded).metrics.link.expect("a link layer");
    // Half of what comes fits; the queue holds 50 at the end.
    assert!((400..600).contains(&link.queue_full), "{link:?}");
    // Waiting is not the link's: a packet is offered when its transmission begins.
    let max = link.latency_max_s.expect("packets were released");
    assert!(max < 0.0109, "{max}");
    let red = crowded.replace(
        "link = \"plain\"",
        "link = \"plain\"\n[hop.red]\nmin = 5\nmax = 15",
    );
    let link = one_run(&red).metrics.link.expect("a link layer");
    assert!(link.queue_early > 0, "{link:?}");
}

#[test]
fn red_marks_a_tcp_that_can_hear_it_and_drops_nothing() {
    let run = one_run(
        r#"
[run]
duration = "60s"
[[hop]]
rate = "10mbit"
delay = "10ms"
queue = "200 packets"
link = "plain"
[hop.red]
min = 5
max = 30
weight = 0.02
[[flow]]
transport = "tcp"
bytes = "5MB"
[tcp]
ecn = true
"#,
    );
    let link = run.metrics.link.expect("the hop has a link layer");
    assert!(run.metrics.completed);
    assert!(link.marked > 0, "{link:?}");
    assert_eq!((link.queue_full, link.queue_early), (0, 0));
}

#[test]
fn hops_with_and_without_link_layers_stand_in_one_chain() {
    let run = one_run(
        r#"
[lan]
rate = "1gbit"
[[hop]]
rate = "5mbit"
delay = "5ms"
[[hop]]
rate = "5mbit"
delay = "5ms"
loss = "1%"
link = "plain"
[[flow]]
transport = "aerotp"
bytes = "200kB"
[[flow]]
transport = "aerotp"
bytes = "200kB"
direction = "reverse"
"#,
    );
    assert!(run.metrics.completed);
    assert_eq!(run.hops.iter().map(|h| h.hop).collect::<Vec<_>>(), [1, 1]);
    assert!(run.hops.iter().all(|h| h.link.released_packets > 100));
}

#[test]
fn over_a_terminal_packets_wait_above_the_link_and_only_its_buffer_is_filled() {
    let run = one_run(
        r#"
[run]
duration = "300s"
[[hop]]
rate = "512kbit"
delay = "250ms"
link = "plain"
ip_queue = "200 packets"
[hop.forward]
rate = "128kbit"
queue = "14.4kB"
dama = "vbdc"
[[flow]]
transport = "tcp"
mtu = "1450B"
bytes = "300kB"
"#,
    );
    let link = run.metrics.link.expect("the hop has a link layer");
    assert!(run.metrics.completed);
    assert_eq!(run.metrics.wire_loss.total(), 0);
    assert_eq!(link.lost_packets, 0);
    // 14.4 kB in front at 128 kbit/s, a packet, the delay, and two rounds of asking (dama.md) are
    // the most that can be below the queue.
    let max = link.latency_max_s.expect("packets were released");
    assert!((0.3..0.9 + 0.1 + 0.25 + 2.2).contains(&max), "{max}");
}

/// A hop whose lane for packets with precedence repairs nothing.
fn with_precedence(transport: &str, priority: u8) -> RunRecord {
    one_run(&format!(
        r#"
[run]
duration = "60s"
[[hop]]
rate = "10mbit"
delay = "10ms"
loss = "5%"
queue = "100 packets"
link = {{ layer = "slacp", ack_delay = "5ms", urgent = {{ arq = false, fec = false }} }}
[[flow]]
transport = "{transport}"
traffic = "constant-rate"
rate = "2mbit"
write = "1000B"
bytes = "500kB"
priority = {priority}
"#
    ))
}

#[test]
fn packets_of_every_transport_have_their_flow_s_precedence_both_ways() {
    for transport in ["udp", "tcp", "lt-tcp", "aerotp"] {
        let repaired = |run: &RunRecord| {
            let hops = run.hops.iter();
            hops.map(|hop| hop.link.frames_again).collect::<Vec<u64>>()
        };
        let ordinary = repaired(&with_precedence(transport, 0));
        assert!(ordinary[0] > 10, "{transport}: {ordinary:?}");
        assert_eq!(
            repaired(&with_precedence(transport, 9)),
            [0, 0],
            "{transport}"
        );
    }
}

#[test]
fn precedence_overtakes_in_the_queue_above_a_layer_if_that_is_its_order() {
    let delay = |order: &str| {
        let run = one_run(&format!(
            r#"
[run]
duration = "20s"
[[hop]]
rate = "1mbit"
delay = "10ms"
queue = "50 packets"
link = {{ layer = "plain", queue_order = "{order}" }}
[[flow]]
transport = "udp"
traffic = "messages"
size = "100B"
interval = "100ms"
bytes = "10kB"
priority = 1
[[flow]]
transport = "udp"
traffic = "constant-rate"
rate = "2mbit"
write = "1000B"
bytes = "2MB"
measured = false
"#
        ));
        run.metrics.flow.delay_p99_s.expect("messages came")
    };
    // A full queue is 50 packets of 1033 octets, 413 ms; one on the link is 8.3 ms, and a message's own time 1 ms.
    let (arrival, precedence) = (delay("arrival"), delay("precedence"));
    assert!(arrival > 0.35, "{arrival}");
    assert!(precedence < 0.010 + 0.0083 + 0.0012, "{precedence}");
}

#[test]
fn packets_as_long_as_a_slot_fill_it_and_longer_ones_are_refused_with_the_length_that_fits() {
    let text = |mtu: &str| {
        format!(
            r#"
[run]
duration = "10s"
[[hop]]
rate = "8mbit"
delay = "1ms"
framing = "18B"
tdma = "2ms of 10ms guard 500us"
[[flow]]
transport = "udp"
traffic = "bulk"
bytes = "1MB"
mtu = "{mtu}"
"#
        )
    };
    // A slot holds 1500 octets: 1482 of packet and 18 around it, 1454 of payload.
    let run = one_run(&text("slot"));
    assert!(run.metrics.completed);
    let packets = 1_000_000_u64.div_ceil(1_454);
    assert_eq!(run.metrics.wire_packets, packets);
    // One packet a frame: the last leaves its slot after so many frames.
    let expected = (packets - 1) as f64 * 0.010;
    let took = run.metrics.flow.last_delivery_s.expect("all came");
    assert!((expected..expected + 0.0026).contains(&took), "{took}");
    // Half as long, two fit; the rest of what does not fit stays empty.
    let half = one_run(&text("732B"))
        .metrics
        .flow
        .goodput_bps
        .expect("it came");
    let whole = run.metrics.flow.goodput_bps.expect("it came");
    assert!(half > 0.95 * whole, "{half} {whole}");
    let odd = one_run(&text("900B"))
        .metrics
        .flow
        .goodput_bps
        .expect("it came");
    assert!(odd < 0.65 * whole, "{odd} {whole}");
    let document = fulmar_sim::Document::parse("slots.toml", &text("1483B")).expect("TOML");
    let refused = fulmar_sim::points(&document)
        .expect_err("too long")
        .to_string();
    assert!(
        refused.contains("the forward slot holds 1500B"),
        "{refused}"
    );
    assert!(refused.contains("mtu = \"slot\""), "{refused}");
}

/// A hop of 8 Mbit/s whose forward slots of 1 ms hold 1000 octets, with the layer, the flow's `mtu` and further tables.
fn slotted(layer: &str, mtu: &str, loss: &str, more: &str) -> String {
    format!(
        r#"
[run]
duration = "60s"
[[hop]]
rate = "8mbit"
delay = "1ms"
queue = "unlimited"
[hop.link]
{layer}
[hop.forward]
tdma = "1ms of 4ms"
loss = "{loss}"
[[flow]]
transport = "udp"
traffic = "bulk"
bytes = "300kB"
mtu = "{mtu}"
{more}
"#
    )
}

#[test]
fn what_a_layer_repairs_fits_into_the_slot_that_the_packet_filled() {
    for layer in [
        "layer = \"selective-repeat\"",
        "layer = \"slacp\"",
        "layer = \"ll-harq\"\nfragments = 1",
    ] {
        let run = one_run(&slotted(layer, "slot", "10%", ""));
        let link = run.metrics.link.expect("the hop has a link layer");
        assert!(
            link.recovered_by_parity + link.recovered_by_arq > 5,
            "{layer}: {link:?}"
        );
    }
}

#[test]
fn ll_harq_over_slots_sends_no_parity_while_nothing_is_lost() {
    let run = one_run(&slotted("layer = \"ll-harq\"", "slot", "none", ""));
    let link = run.metrics.link.expect("the hop has a link layer");
    assert!(run.metrics.completed);
    assert_eq!((link.frames_parity, link.lost_packets), (0, 0), "{link:?}");
}

#[test]
fn link_layers_over_slots_wait_as_long_as_the_slots_make_many_frames_take() {
    // Feedback on a block that is asked for before its units have left finds them all missing.
    let run = one_run(&slotted("layer = \"ll-harq\"", "slot", "5%", ""));
    let link = run.metrics.link.expect("the hop has a link layer");
    assert!(
        link.residual_loss.is_some_and(|loss| loss < 0.01),
        "{link:?}"
    );
    // A timer that leaves out a slot's wait repeats what is on its way.
    for layer in ["ll-arq", "selective-repeat"] {
        let run = one_run(&slotted(
            &format!("layer = \"{layer}\""),
            "200B",
            "none",
            "",
        ));
        let link = run.metrics.link.expect("the hop has a link layer");
        assert_eq!(link.frames_again, 0, "{layer}: {link:?}");
    }
}

#[test]
fn slots_are_checked_at_every_rate_and_against_the_packets_that_cross_them() {
    let refusal = |text: &str| {
        let document = fulmar_sim::Document::parse("slots.toml", text).expect("TOML");
        fulmar_sim::points(&document)
            .map(|_| ())
            .expect_err("refused")
            .to_string()
    };
    let slower = "[[change]]\nat = \"5s\"\nrate = \"4mbit\"\n";
    // At 4 Mbit/s a slot holds 500 octets, 19 of them around the packet.
    let refused = refusal(&slotted("layer = \"plain\"", "482B", "none", slower));
    assert!(refused.contains("the forward slot holds 500B"), "{refused}");
    let fits = slotted("layer = \"plain\"", "481B", "none", slower);
    let run = one_run(&fits);
    assert_eq!(run.metrics.wire_packets, 300_000_u64.div_ceil(481 - 28));
    // Ten octets are less than what stands around a packet: no packet fits.
    let tiny =
        slotted("layer = \"plain\"", "slot", "none", "").replace("1ms of 4ms", "10us of 4ms");
    let refused = refusal(&tiny);
    assert!(refused.contains("`0B` must be 68B"), "{refused}");
    // A graph whose other hop has slots: a flow that does not cross it keeps its length.
    let graph = |first: &str| {
        format!(
            r#"
[[hop]]
from = "a"
to = "b"
rate = "8mbit"
[[hop]]
from = "b"
to = "c"
rate = "8mbit"
tdma = "1ms of 4ms"
[[flow]]
from = "a"
to = "b"
transport = "udp"
bytes = "10kB"
mtu = "{first}"
[[flow]]
from = "b"
to = "c"
transport = "udp"
bytes = "10kB"
mtu = "slot"
"#
        )
    };
    let document = fulmar_sim::Document::parse("slots.toml", &graph("1500B")).expect("TOML");
    let points = fulmar_sim::points(&document).expect("a scenario");
    let lengths: Vec<u64> = points[0].plan.flows.iter().map(|flow| flow.mtu.0).collect();
    assert_eq!(lengths, [1_500, 1_000]);
    let refused = refusal(&graph("slot"));
    assert!(refused.contains("give a hop tdma"), "{refused}");
}
