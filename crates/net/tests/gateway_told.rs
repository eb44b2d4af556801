//! A gateway hears what a link tells of itself over a Unix socket, says it on, and uses it; what is wrong changes a counter alone.
//!
//! Method: two gateways on threads over the loopback, and a program of the test that speaks for the modem.

use fulmar_net::clock::Clock;
use fulmar_net::gateway::{Control, Gateway, config::GatewayConfig};
use fulmar_net::session::{Entropy, PresetKey, write_preset_key};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A gateway on a thread of its own.
pub(crate) struct Running {
    thread: Option<thread::JoinHandle<()>>,
    control: Control,
    pub(crate) carrier: SocketAddr,
    metrics: SocketAddr,
}

/// The directories of two gateways, and their key.
pub(crate) fn keys() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    for name in ["ground", "air"] {
        std::fs::create_dir(place.path().join(name)).expect("room");
    }
    let key = PresetKey::generate(&mut Entropy::from_seed([7; 32]));
    write_preset_key(&place.path().join("key"), &key).expect("room");
    place
}

pub(crate) fn start(
    place: &Path,
    own: &str,
    peer: &str,
    (address, rest): (Option<SocketAddr>, &str),
) -> Running {
    let address = address.map_or_else(String::new, |at| format!("address = \"{at}\"\n"));
    let text = format!(
        "[gateway]\nname = \"{own}\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{}\"\n\
         [security]\nkind = \"preset\"\npreset_key_file = \"{}\"\n\
         [[peer]]\nname = \"{peer}\"\n{address}[metrics]\nlisten = \"127.0.0.1:0\"\n\
         [egress]\nallow = [\"127.0.0.1:1-65535\"]\n{rest}",
        place.join(own).display(),
        place.join("key").display(),
    );
    let config = GatewayConfig::read("test", &text).expect("sound");
    let (tell, told) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        let gateway = Gateway::start(Clock::start(), config).expect("it starts");
        let control = gateway.control().expect("a handle");
        let metrics = gateway.metrics().expect("it has some");
        tell.send((control, gateway.carrier(), metrics))
            .expect("the test waits");
        gateway.run().expect("it runs");
    });
    let (control, carrier, metrics) = told.recv().expect("it starts");
    Running {
        thread: Some(thread),
        control,
        carrier,
        metrics,
    }
}

impl Running {
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.metrics).expect("it listens");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");
        page.split_once("\r\n\r\n").expect("a page").1.to_owned()
    }

    pub(crate) fn peer(&self) -> Value {
        let status: Value = serde_json::from_str(&self.get("/status")).expect("JSON");
        status["peers"][0].clone()
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..600 {
            let peer = self.peer();
            if holds(&peer) {
                return peer;
            }
            thread::park_timeout(Duration::from_millis(50));
        }
        panic!("{what}: {}", self.peer());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends");
        }
    }
}

#[test]
fn what_a_link_tells_over_its_socket_is_used_and_said_and_what_is_wrong_is_counted() {
    let place = keys();
    let at = place.path();
    let socket = at.join("modem.sock");
    let link = format!(
        "[[link]]\nname = \"satellite\"\nsocket = \"{}\"\n",
        socket.display()
    );
    let ground = start(at, "ground", "air", (None, ""));
    let air = start(at, "air", "ground", (Some(ground.carrier), &link));
    air.until("a session", |peer| peer["link"] == "up");
    let first = &air.peer()["links"][0];
    assert_eq!(
        (&first["name"], &first["is_heard"]),
        (&"satellite".into(), &false.into())
    );
    assert!(
        first["up"].is_null() && first["age_seconds"].is_null(),
        "{first}"
    );

    let mut modem = UnixStream::connect(&socket).expect("it listens");
    modem
        .write_all(b"{\"v\":1,\"up\":true,\"rate_out_bits_per_second\":2000000,\"signal_to_noise_decibels\":9.5}\n")
        .expect("it reads");
    let peer = air.until("the rate", |peer| {
        peer["links"][0]["rate_out_bits_per_second"] == 2_000_000
    });
    assert_eq!(peer["links"][0]["up"], true);
    assert!(peer["links"][0]["age_seconds"].as_f64() < Some(30.0));
    let figures = air.get("/metrics");
    for line in [
        "fulmar_link_told_up{peer=\"ground\",link=\"satellite\"} 1",
        "fulmar_link_told_rate_bits_per_second{peer=\"ground\",link=\"satellite\"} 2000000",
        "fulmar_link_trusted{peer=\"ground\",link=\"satellite\"} 1",
    ] {
        assert!(figures.contains(line), "{line} in {figures}");
    }

    modem
        .write_all(b"{\"v\":1,\"up\":true,\"rate\":7}\nnothing\n{\"v\":2}\n")
        .expect("it reads");
    modem.write_all(&vec![b'x'; 100_000]).expect("it reads");
    modem.write_all(b"\n").expect("it reads");
    let peer = air.until("the wrong lines", |peer| {
        peer["links"][0]["wrong_messages"] == 4
    });
    assert_eq!(peer["links"][0]["messages"], 1);
    assert_eq!(
        peer["links"][0]["rate_out_bits_per_second"], 2_000_000,
        "nothing else changed"
    );
    assert_eq!(peer["link"], "up");

    modem
        .write_all(b"{\"v\":1,\"up\":false}\n")
        .expect("it reads");
    let peer = air.until("down", |peer| peer["link"] == "down");
    let verdict = peer["verdict"]["text"].as_str().expect("a sentence");
    assert!(
        verdict.starts_with("The link satellite tells that it is down"),
        "{verdict}"
    );
    assert!(
        air.get("/view").contains("Link satellite told"),
        "the page and top say it"
    );
    modem
        .write_all(b"{\"v\":1,\"up\":true}\n")
        .expect("it reads");
    air.until("up", |peer| peer["link"] == "up");
    drop(modem);
    air.until("an end", |peer| peer["links"][0]["is_heard"] == false);
    drop(air);
    assert!(!socket.exists(), "it is taken away");
}

#[test]
fn a_link_that_is_up_by_its_word_and_silent_is_found_wrong() {
    let place = keys();
    let at = place.path();
    let socket = at.join("modem.sock");
    let link = format!(
        "[[link]]\nname = \"satellite\"\nsocket = \"{}\"\nvalid_for = \"300s\"\n",
        socket.display()
    );
    // A relay that can be cut: the ends do not tell each other that one of them leaves.
    let relay = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let ground = start(at, "ground", "air", (None, ""));
    let carrier = ground.carrier;
    let between = relay.local_addr().expect("it has one");
    let cut = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (seen, ended) = (std::sync::Arc::clone(&cut), std::sync::Arc::clone(&cut));
    let carrying = thread::spawn(move || {
        let mut air = None;
        let mut octets = [0; 2_048];
        while let Ok((len, from)) = relay.recv_from(&mut octets) {
            if seen.load(std::sync::atomic::Ordering::SeqCst) {
                if len == 1 {
                    break;
                }
                continue;
            }
            let to = if from == carrier {
                air
            } else {
                air = Some(from);
                Some(carrier)
            };
            if let Some(to) = to {
                relay.send_to(&octets[..len], to).expect("it goes");
            }
        }
    });
    let air = start(at, "air", "ground", (Some(between), &link));
    air.until("a session", |peer| peer["link"] == "up");
    let mut modem = UnixStream::connect(&socket).expect("it listens");
    modem
        .write_all(b"{\"v\":1,\"up\":true}\n")
        .expect("it reads");
    air.until("the word", |peer| peer["links"][0]["up"] == true);
    cut.store(true, std::sync::atomic::Ordering::SeqCst);
    let peer = air.until("the fault", |peer| peer["links"][0]["is_trusted"] == false);
    let fault = "nothing comes back, while the link tells that it is up";
    assert_eq!(
        (&peer["links"][0]["fault"], &peer["links"][0]["faults"]),
        (&fault.into(), &1.into())
    );
    let status: Value = serde_json::from_str(&air.get("/status")).expect("JSON");
    let alarms = status["alarms"].as_array().expect("a list");
    assert!(
        alarms
            .iter()
            .any(|alarm| alarm["rule"] == "link_told_wrong"),
        "{alarms:?}"
    );
    drop((air, ground));
    ended.store(true, std::sync::atomic::Ordering::SeqCst);
    let last = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    last.send_to(&[0], between).expect("it goes");
    carrying.join().expect("it ends");
}

#[test]
fn a_schedule_stops_a_link_and_starts_it_again_without_a_word_from_anybody() {
    let place = keys();
    let at = place.path();
    let file = at.join("passes.csv");
    std::fs::write(
        &file,
        "from,until,rate,ber\n0s,10s,2mbit,1e-6\n14s,1h,4mbit,\n",
    )
    .expect("room");
    let link = format!(
        "[[link]]\nname = \"pass\"\nschedule = \"{}\"\n",
        file.display()
    );
    let ground = start(at, "ground", "air", (None, ""));
    let air = start(at, "air", "ground", (Some(ground.carrier), &link));
    let peer = air.until("a session", |peer| peer["link"] == "up");
    let link = &peer["links"][0];
    assert_eq!(
        (&link["up"], &link["rate_out_bits_per_second"]),
        (&true.into(), &2_000_000.into())
    );
    assert!(
        link["next_outage_in_seconds"].as_f64() > Some(0.0),
        "{link}"
    );
    let lasts = link["next_outage_seconds"].as_f64().expect("it is known");
    assert!((3.9..4.1).contains(&lasts), "{link}");
    let peer = air.until("the outage", |peer| peer["link"] == "down");
    assert_eq!(peer["links"][0]["up"], false);
    let peer = air.until("the next pass", |peer| peer["link"] == "up");
    assert_eq!(peer["links"][0]["rate_out_bits_per_second"], 4_000_000);
    assert_eq!(peer["outages"]["count"], 1);
    let lasted = peer["outages"]["longest_seconds"]
        .as_f64()
        .expect("it is over");
    assert!((3.5..4.6).contains(&lasted), "{peer}");
}
