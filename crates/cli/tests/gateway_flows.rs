//! A thousand flows at once and three thousand in a row through two gateways: all are answered, and
//! nothing is left of them. `make flows` is the long form.

use crate::gateways::{Pair, client, echo, server};
use crate::processes::{moment, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

const AT_ONCE: usize = 1_000;
const IN_A_ROW: usize = 3_000;
const CLIENTS: usize = 4;
/// The number of looks, 5 ms apart.
const LOOKS: usize = 40;
/// The most memory that may stay for a flow that has ended. An open flow takes 6.2 kB
/// (docs/measurements/flows.md), so a leaked one would show as that much; 0.2 to 0.6 were seen. Half of a
/// leaked one is too much.
const KEPT_KB_MAX: f64 = 3.1;

fn exchange(to: SocketAddr) -> TcpStream {
    let mut stream = client(to);
    stream.write_all(&[7; 100]).expect("room");
    let mut back = [0; 100];
    stream.read_exact(&mut back).expect("the echo");
    assert_eq!(back, [7; 100]);
    stream
}

/// Makes exchanges by a few clients at once, one after the other.
fn in_a_row(entry: SocketAddr) {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            thread::spawn(move || {
                for _ in 0..IN_A_ROW / CLIENTS {
                    drop(exchange(entry));
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("every exchange was whole");
    }
}

#[test]
fn flows_at_once_and_in_a_row_leave_nothing_behind() {
    let to = server(echo);
    let forward = format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n");
    let pair = Pair::start("--rate 1gbit --delay 100us --queue 10000", &forward);
    let entry = pair.entries[0];
    drop(exchange(entry));
    until("the first flow to end", || pair.status()["flows"] == 0);
    // The ground gateway may still be closing that one.
    let mut idle = pair.taken();
    for _ in 0..LOOKS {
        moment();
        for (least, now) in idle.iter_mut().zip(pair.taken()) {
            least.1 = least.1.min(now.1);
        }
    }

    let open: Vec<TcpStream> = (0..AT_ONCE).map(|_| exchange(entry)).collect();
    assert_eq!(pair.status()["flows"], AT_ONCE);
    for (before, now) in idle.iter().zip(pair.taken()) {
        assert!(now.1 >= before.1 + AT_ONCE, "each has a socket");
    }
    drop(open);
    until("all to end", || pair.status()["flows"] == 0);
    // Connections linger for a while after their end (TIME-WAIT). The first row fills the room that those
    // take, the more the faster the machine is; the second finds it free.
    in_a_row(entry);
    until("the first row to end", || pair.status()["flows"] == 0);
    let closed = pair.taken();
    in_a_row(entry);
    until("the last to end", || pair.status()["flows"] == 0);
    // The ground gateway may still be closing the last ones.
    until("every descriptor to be closed", || {
        pair.taken()
            .iter()
            .zip(idle)
            .all(|(now, idle)| now.1 <= idle.1)
    });
    for (name, (now, before)) in ["ground", "air"]
        .iter()
        .zip(pair.taken().iter().zip(closed))
    {
        let grown = (now.0 as f64 - before.0 as f64) / IN_A_ROW as f64;
        assert!(
            grown < KEPT_KB_MAX,
            "{name}: {grown:.1} kB for each flow in a row"
        );
        eprintln!("{name}: {grown:.1} kB for each flow in a row");
    }
}
