//! UDP with a deadline through two gateways as processes: messages overtake lost ones, each comes once, and those that were
//! given up are counted by cause.

use crate::gateways::{Pair, status_at};
use crate::processes::until;
use serde_json::Value;
use std::net::UdpSocket;
use std::time::Duration;

const MESSAGES: u32 = 400;
/// The time that a look at the receiver takes at most, and the looks after the last message.
const LOOK: Duration = Duration::from_millis(20);
const LAST_LOOKS: u32 = 400;
const LINK: &str = "--rate 10mbit --delay 20ms --queue 200 --loss 20%";
const CLASS: &str = "[class.live]\ndeadline = \"2s\"\ndeliver = \"by deadline\"\n";

fn class(status: &Value, series: &str) -> f64 {
    let series = format!("fulmar_{series}");
    status["metrics"][&series].as_f64().unwrap_or_default()
}

#[test]
fn messages_with_a_deadline_overtake_lost_ones_and_come_once() {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port");
    receiver.set_read_timeout(Some(LOOK)).expect("a socket");
    let to = receiver.local_addr().expect("it is bound");
    let entry = "[[forward]]\nprotocol = \"udp\"\nlisten = \"127.0.0.1:0\"";
    let air = format!("{CLASS}{entry}\nto = \"{to}\"\nclass = \"live\"\n");
    let pair = Pair::start_both(LINK, &air, CLASS);
    until("keys", || pair.status()["peers"][0]["link"] == "up");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (mut message, mut buffer) = (vec![0; 1_200], vec![0; 2_000]);
    let mut came: Vec<u32> = Vec::new();
    let mut take = |came: &mut Vec<u32>| {
        if let Ok(len) = receiver.recv(&mut buffer) {
            assert_eq!(len, 1_200);
            came.push(u32::from_be_bytes(*buffer.first_chunk().expect("a number")));
        }
    };
    for number in 0..MESSAGES {
        message[..4].copy_from_slice(&number.to_be_bytes());
        let sent = sender.send_to(&message, pair.entries[0]);
        sent.expect("it leaves");
        take(&mut came);
    }
    for _ in 0..LAST_LOOKS {
        if came.len() < MESSAGES as usize {
            take(&mut came);
        }
    }
    let overtaking = came.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(
        overtaking >= 20,
        "{overtaking} of {} came out of order",
        came.len()
    );
    let mut each = came.clone();
    each.sort_unstable();
    each.dedup();
    assert_eq!(each.len(), came.len(), "none comes twice");
    let (here, there) = (pair.status(), status_at(pair.ground_metrics));
    let lost = |status: &Value, reason: &str| {
        let series = format!("messages_lost_total{{class=\"live\",reason=\"{reason}\"}}");
        class(status, &series)
    };
    let given_up = lost(&here, "late_unsent") + lost(&there, "late_given_up");
    let all = came.len() as f64 + given_up + lost(&there, "late_arrived");
    assert!(all >= f64::from(MESSAGES), "{all}: {here} {there}");
    // In two seconds a message has dozens of rounds, on a slow machine, too.
    assert!(came.len() >= MESSAGES as usize * 99 / 100, "{}", came.len());
}
