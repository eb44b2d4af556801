//! A transfer through two gateways whose link is down again and again, and one whose link is down for
//! long: nothing is lost or altered, and octets come again soon after the link does.
//!
//! Method: two network namespaces, `fulmar emulate --tun` at 10 mbit and 5 ms with planned outages,
//! security on. A sender and a receiver with the kernel's own TCP; the receiver notes the longest
//! pause. Short forms run here, `make soak` runs ten outages of 20 s and one of 10 min. Needs root.

use crate::processes::{octets, run};
use crate::rig::{Rig, ready};
use fulmar_net::clock::Clock;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const PORT: u16 = 7000;

/// Sends `len` octets from ground to air while the link keeps to `outages`; returns the longest pauses of
/// the receiver, longest first.
fn transfer(outages: &str, len: usize) -> Vec<Duration> {
    // The plan's blanks belong to it.
    let rig = Rig::start_with(&["--rate", "10mbit", "--delay", "5ms", "--outage", outages]);
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let public = ["ground", "air"].map(|name| {
        let output = run(&format!("keygen {}/{name}.key", place.display()));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    let head = |name: &str, peer: &str, key: &str| {
        let place = place.display();
        format!(
            "[gateway]\nname = \"{name}\"\nlisten = \"0.0.0.0:4914\"\nstate_dir = \"{place}\"\n\
             [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{name}.key\"\n\
             [[peer]]\nname = \"{peer}\"\npublic_key = \"{key}\"\nrate = \"10mbit\"\n"
        )
    };
    let air =
        head("air", "ground", &public[0]) + &format!("[egress]\nallow = [\"127.0.0.1:{PORT}\"]\n");
    let ground = head("ground", "air", &public[1])
        + &format!(
            "address = \"10.77.0.2:4914\"\n[class.bulk]\nmode = \"reliable\"\n\
             [[forward]]\nlisten = \"127.0.0.1:{PORT}\"\nto = \"127.0.0.1:{PORT}\"\nclass = \"bulk\"\n"
        );
    let _air = rig.air.gateway(place, "air", &air);
    let _ground = rig.ground.gateway(place, "ground", &ground);
    let listener = rig
        .air
        .within(|| TcpListener::bind(("127.0.0.1", PORT)).expect("a port"));
    let mut client = rig
        .ground
        .within(|| TcpStream::connect(("127.0.0.1", PORT)).expect("a port"));
    let sent = octets(1, len);
    let (received, mut pauses) = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("the gateway connects");
            let (mut all, mut pauses) = (Vec::new(), Vec::new());
            let mut buffer = vec![0; 65_536];
            let clock = Clock::start();
            let mut last = clock.now();
            loop {
                let len = stream.read(&mut buffer).expect("it ends properly");
                let now = clock.now();
                pauses.push(now.saturating_since(last));
                last = now;
                if len == 0 {
                    return (all, pauses);
                }
                all.extend_from_slice(&buffer[..len]);
            }
        });
        client.write_all(&sent).expect("it is taken");
        client.shutdown(Shutdown::Write).expect("it is open");
        receiving.join().expect("the receiver")
    });
    assert!(received == sent, "altered or incomplete");
    pauses.sort_unstable();
    pauses.reverse();
    pauses
}

fn report(outages: &str, down: Duration, pauses: &[Duration]) {
    let longest: Vec<String> = pauses
        .iter()
        .take_while(|pause| **pause > down / 2)
        .map(|pause| format!("{:.2}", pause.saturating_sub(down).as_secs_f64()))
        .collect();
    eprintln!("outages {outages}: seconds from the link's return to the next octet: {longest:?}");
}

#[test]
fn a_transfer_outlives_outages_again_and_again() {
    if !ready(&[]) {
        return;
    }
    let plan = "every 3s for 2s";
    report(plan, Duration::from_secs(2), &transfer(plan, 6_000_000));
}

#[test]
fn a_transfer_outlives_a_longer_outage() {
    if !ready(&[]) {
        return;
    }
    let plan = "3s+8s";
    report(plan, Duration::from_secs(8), &transfer(plan, 5_000_000));
}

#[test]
#[ignore = "16 minutes: make soak"]
fn ten_outages_of_20_s_and_one_of_10_min() {
    assert!(ready(&[]), "needs root");
    // 50 MB take 42 s of link: 22 s, and 2 s after each outage.
    for (plan, down, least) in [("every 22s for 20s", 20, 10), ("20s+600s", 600, 1)] {
        let down = Duration::from_secs(down);
        let pauses = transfer(plan, 50_000_000);
        report(plan, down, &pauses);
        let outages = pauses.iter().filter(|pause| **pause > down / 2).count();
        assert!(outages >= least, "{outages} outages only");
        assert!(pauses[0] < down + Duration::from_secs(1), "{:?}", pauses[0]);
    }
}
