//! Flags, values and addresses that make no sense.

use super::fails;
use crate::processes::{Place, free_port, run, said};

#[test]
fn a_wrong_flag_is_a_usage_error_that_names_it() {
    fails(
        "send x 127.0.0.1:9 --rate 5",
        2,
        &["--rate", "no unit", "5mbit"],
    );
    fails(
        "send x 127.0.0.1:9 --rate 5Mbps",
        2,
        &["--rate", "bytes per second"],
    );
    fails(
        "send x 127.0.0.1:9 --mode best",
        2,
        &["--mode", "nack-mack"],
    );
    fails(
        "send x 127.0.0.1:9 --fec-words 257",
        2,
        &["--fec-words", "0 to 256"],
    );
    fails("send x 127.0.0.1:9 --block 250,10", 2, &["--block", "256"]);
    fails("send x 127.0.0.1:9 --mack 366", 2, &["--mack", "365"]);
    fails("recv --lisen :1 .", 2, &["--lisen", "--listen"]);
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --loss 120%",
        2,
        &["--loss", "120%"],
    );
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --loss 10",
        2,
        &["--loss", "write % behind it"],
    );
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --jitter 2ms",
        2,
        &["jitter", "delay"],
    );
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --preset moon",
        2,
        &["moon", "airborne"],
    );
    fails("demo --modes tcp", 2, &["--modes", "plain-udp"]);
    fails("sim --swarm 0", 2, &["--swarm", "1.."]);
}

#[test]
fn a_value_that_would_do_nothing_is_a_usage_error_that_names_its_flag() {
    let place = Place::with(10);
    let send = format!("send {} 127.0.0.1:9", place.file());
    let relay = "emulate --listen :0 --to 127.0.0.1:9";
    fails(&format!("{send} --burst 0"), 2, &["--burst", "1.."]);
    fails(&format!("{send} --give-up 500ms"), 2, &["--give-up", "1s"]);
    fails(&format!("{send} --mtu 65535"), 2, &["--mtu", "65000"]);
    fails(
        &format!("{send} --connect-timeout 0s"),
        2,
        &["--connect-timeout", "0"],
    );
    fails(
        "recv in --checkpoint 0s",
        2,
        &["--checkpoint", "longer than 0"],
    );
    fails("recv in --give-up 500ms", 2, &["--give-up", "1s"]);
    fails(
        &format!("{relay} --stats 0s"),
        2,
        &["--stats", "longer than 0"],
    );
    fails(&format!("{relay} --flows 0"), 2, &["--flows", "1.."]);
    fails(&format!("{relay} --mtu 1000"), 2, &["--mtu"]);
    fails(
        "emulate --listen :0 --to 127.0.0.1:0",
        2,
        &["--to", "port 0"],
    );
    let to_nobody = format!("send {} 127.0.0.1:0", place.file());
    fails(&to_nobody, 2, &["127.0.0.1:0", "port 0"]);
    fails("sim x.toml --show", 2, &["--show"]);
    fails("sim x.toml --runs 0", 2, &["--runs", "1..=1000000"]);
    fails("sim x.toml --jobs 100000", 2, &["--jobs", "0..=1024"]);
    fails("sim --swarm 2 --show", 2, &["--show", "--swarm 1"]);
}

#[test]
fn a_negative_value_is_told_as_such() {
    for arguments in [
        "sim x.toml --runs -5",
        "sim x.toml --seed -1",
        "emulate --listen :0 --to 127.0.0.1:9 --delay -10ms",
        "emulate --listen :0 --to 127.0.0.1:9 --loss -2%",
        "send x 127.0.0.1:9 --rate -5mbit",
    ] {
        let value = arguments.rsplit("--").next().unwrap_or_default();
        fails(arguments, 2, &[value, "must not be negative"]);
    }
}

#[test]
fn options_that_leave_no_room_for_data_are_named_as_the_user_wrote_them() {
    let place = Place::with(10);
    let narrow = "--mtu 100 --fec-words 24";
    let words =
        ["fulmar: --mtu leaves 0 of 72 octets for payload beside 24 FEC words; it must leave"];
    fails(
        &format!("send {} 127.0.0.1:9 {narrow}", place.file()),
        2,
        &words,
    );
    fails(&format!("perf -c 127.0.0.1 {narrow}"), 2, &words);
}

#[test]
fn an_emulator_whose_target_is_itself_is_refused() {
    for listen in ["", "127.0.0.1", "0.0.0.0"] {
        let port = free_port();
        let arguments = format!("emulate --listen {listen}:{port} --to 127.0.0.1:{port}");
        fails(&arguments, 2, &["--to", "--listen", "feed itself"]);
    }
}

#[test]
fn a_negative_number_is_refused_for_what_it_is() {
    let flags = [
        ("--mack", "-5"),
        ("--rate", "-5mbit"),
        ("--block", "-1,2"),
        ("--give-up", "-1s"),
    ];
    for (flag, value) in flags {
        let output = run(&format!("send x 127.0.0.1:9 {flag} {value}"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(flag) && said.contains(value), "{said}");
        assert!(!said.contains("to pass"), "the wrong hint: {said}");
    }
    fails(
        "emulate --listen :0 --to 127.0.0.1:9 --loss -5%",
        2,
        &["--loss", "-5%"],
    );
}

#[test]
fn a_flag_that_would_do_nothing_is_a_usage_error_that_says_where_it_belongs() {
    let place = Place::with(10);
    for mode in ["reliable", "nack-mack", "nack", "unreliable", "datagram"] {
        fails(
            &format!(
                "send {} 127.0.0.1:9 --mode {mode} --block 8,2",
                place.file()
            ),
            2,
            &["--block", "--mode quasi-reliable", mode],
        );
    }
    fails(
        &format!("send {} 127.0.0.1:9 --rate 0mbit", place.file()),
        2,
        &["--rate", "0"],
    );
}

#[test]
fn a_wrong_end_of_a_tun_link_is_a_usage_error() {
    fails("emulate --tun c=x", 2, &["--tun", "a=NAMESPACE"]);
    fails("emulate --tun a=x:10.1", 2, &["--tun", "10.77.0.1/24"]);
    fails("emulate --tun a=x b=x", 2, &["--tun", "one namespace"]);
    fails("emulate --tun a=x a=y", 2, &["--tun", "twice"]);
    fails("emulate --tun --mtu 1000", 2, &["--mtu 1280", "IPv4"]);
    fails("emulate --tun --listen :1", 2, &["--tun", "--listen"]);
    fails(
        "emulate --tun a=x/name-of-16-chars",
        2,
        &["name-of-16-chars", "15"],
    );
    fails("emulate --tap c=x", 2, &["--tap", "a=NAMESPACE"]);
    fails("emulate --tap a=x b=x", 2, &["--tap", "one namespace"]);
    fails("emulate --tap --tun", 2, &["--tap", "--tun"]);
    fails("emulate --tap --listen :1", 2, &["--tap", "--listen"]);
    fails("emulate --to :1", 2, &["--listen"]);
}

#[test]
fn an_address_that_is_none_is_a_usage_error() {
    let place = Place::with(10);
    for text in ["127.0.0.1:99999", ":x"] {
        fails(
            &format!("send {} {text}", place.file()),
            2,
            &[text, "HOST:PORT"],
        );
    }
    fails(
        "emulate --listen 1.2.3 --to 127.0.0.1:9",
        2,
        &["--listen", "1.2.3"],
    );
}

#[test]
fn a_link_of_which_the_receiver_tells_nothing_cannot_be_shared() {
    let place = Place::with(10);
    let send = format!("send {} 127.0.0.1:9 --mode datagram", place.file());
    fails(
        &format!("{send} --rate 5mbit --share background"),
        2,
        &["--share background", "--key", "another --mode"],
    );
}

#[test]
fn a_host_without_an_address_is_unreachable_and_no_usage_error() {
    let place = Place::with(10);
    let send = format!("send {} nosuch.invalid:4914", place.file());
    for command in [
        send.as_str(),
        "perf -c nosuch.invalid",
        "emulate --listen 127.0.0.1:0 --to nosuch.invalid:4914",
        "top nosuch.invalid:9100 --once",
    ] {
        fails(
            command,
            3,
            &["no address is known for the host", "nosuch.invalid"],
        );
    }
}
