//! A SOCKS client that negotiates outlives `kill -9` of its gateway, wherever its negotiation stands.
//!
//! Method: two gateways as processes, as in `gateway_killed`. Each client stops at a stage of its own, the
//! gateway at its side is killed, each client sends a little more, the gateway is started again. In the end
//! each has been answered once and served by a destination that echoes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::gateway_killed::{AIR, KEPT, PATIENCE, Pair, sockets};
use crate::gateways::{client, echo, exchange, server};
use crate::processes::until;
use fulmar_proto::rng::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const USER: &str = "pilot";
const PASSWORD: &str = "over and out";
const BEHIND: &[u8] = b"octets behind the request";
const SUCCEEDED: [u8; 4] = [5, 0, 0, 1];

/// The messages of a client, and the answers to all but the last.
struct Dialogue {
    words: Vec<Vec<u8>>,
    answers: Vec<u8>,
}

impl Dialogue {
    fn new(to: SocketAddr, login: bool) -> Self {
        let [high, low] = to.port().to_be_bytes();
        let request = vec![5, 1, 0, 1, 127, 0, 0, 1, high, low];
        let (user, password) = (USER.as_bytes(), PASSWORD.as_bytes());
        let len = |text: &[u8]| vec![u8::try_from(text.len()).unwrap()];
        let credentials = [&[1], &len(user)[..], user, &len(password)[..], password].concat();
        if login {
            let words = vec![vec![5, 2, 0, 2], credentials, request];
            let answers = vec![5, 2, 1, 0];
            Self { words, answers }
        } else {
            let words = vec![vec![5, 1, 0], request];
            let answers = vec![5, 0];
            Self { words, answers }
        }
    }

    fn octets(&self) -> usize {
        self.words.iter().map(Vec::len).sum()
    }
}

/// A client that has sent some octets of its dialogue.
struct Speaker<'a> {
    stream: TcpStream,
    dialogue: &'a Dialogue,
    said: usize,
    heard: Vec<u8>,
}

impl<'a> Speaker<'a> {
    fn new(entry: SocketAddr, dialogue: &'a Dialogue) -> Self {
        let stream = client(entry);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            dialogue,
            said: 0,
            heard: Vec::new(),
        }
    }

    /// Sends up to octet `until` of the dialogue, without waiting for answers.
    fn say(&mut self, until: usize) {
        let all = [self.dialogue.words.concat(), BEHIND.to_vec()].concat();
        let until = until.min(all.len());
        if let Some(more) = all.get(self.said..until) {
            self.stream.write_all(more).unwrap();
            self.said = until;
        }
    }

    /// Reads the answers to the messages that it has sent whole, except the last.
    fn hear(&mut self) {
        let mut end = 0;
        let whole = self.dialogue.words.iter().take_while(|word| {
            end += word.len();
            end <= self.said
        });
        let due = (2 * whole.count()).min(self.dialogue.answers.len());
        let mut answers = vec![0; due.saturating_sub(self.heard.len())];
        self.stream.read_exact(&mut answers).expect("not reset");
        self.heard.extend_from_slice(&answers);
    }

    /// Sends the rest, and reads every answer once.
    fn end_served(mut self) {
        self.say(usize::MAX);
        self.stream.shutdown(Shutdown::Write).unwrap();
        self.stream.read_to_end(&mut self.heard).expect("not reset");
        let (answers, rest) = self.heard.split_at(self.dialogue.answers.len());
        assert_eq!(answers, self.dialogue.answers);
        let (reply, echoed) = rest.split_at(10);
        assert_eq!(reply[..4], SUCCEEDED);
        assert_eq!(echoed, BEHIND, "said {}", self.said);
    }
}

/// Two gateways, of which the one at the clients' side may want a login.
fn pair(login: bool) -> (Pair, Dialogue) {
    let to = server(echo);
    let mut pair = Pair::start(to, KEPT);
    if login {
        let secret = pair.directory.path().join("password");
        fs::write(&secret, PASSWORD).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&secret, mode).unwrap();
        let file = pair.directory.path().join("air.toml");
        let text = fs::read_to_string(&file).unwrap();
        let (secret, socks) = (secret.display(), "[[socks]]\n");
        let wanted = format!("{socks}user = \"{USER}\"\npassword_file = \"{secret}\"\n");
        assert!(text.contains(socks));
        pair.kill(AIR);
        fs::write(&file, text.replacen(socks, &wanted, 1)).unwrap();
        pair.start_again(AIR);
    }
    (pair, Dialogue::new(to, login))
}

fn keeper(pair: &Pair) -> u32 {
    let mut keeper = None;
    until("a keeper", || {
        let air = pair.gateways[AIR].as_ref().unwrap();
        keeper = air.children("gateway-keeper").first().copied();
        keeper.is_some()
    });
    keeper.expect("it was seen")
}

fn killed_at_every_octet(login: bool) {
    let (mut pair, dialogue) = pair(login);
    let entry = pair.socks;
    // Stages from before the first octet to after the request.
    let mut speakers: Vec<Speaker<'_>> = (0..=dialogue.octets() + 1)
        .map(|octets| {
            let mut speaker = Speaker::new(entry, &dialogue);
            speaker.say(octets);
            speaker.hear();
            speaker
        })
        .collect();
    speakers.last_mut().unwrap().say(usize::MAX);
    for _ in 0..3 {
        pair.kill(AIR);
        // Every other client sends more while the gateway is down; it may be its whole message, or a part
        // of the next.
        for (number, speaker) in speakers.iter_mut().enumerate() {
            let more = speaker.said + number % 2;
            speaker.say(more);
        }
        pair.start_again(AIR);
        speakers.iter_mut().for_each(Speaker::hear);
    }
    for speaker in speakers {
        speaker.end_served();
    }
}

#[test]
fn a_kill_at_any_octet_of_a_negotiation_resets_nobody() {
    killed_at_every_octet(false);
}

#[test]
fn a_kill_at_any_octet_of_a_negotiation_with_a_login_resets_nobody() {
    killed_at_every_octet(true);
}

#[test]
fn clients_that_negotiate_in_small_pieces_are_served_through_many_kills() {
    const KILLS: usize = 10;
    const CLIENTS: u64 = 4;
    let (mut pair, dialogue) = pair(false);
    let (entry, dialogue) = (pair.socks, Arc::new(dialogue));
    let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (done, stop) = (Arc::clone(&done), Arc::clone(&stop));
            let dialogue = Arc::clone(&dialogue);
            let mut rng = Rng::from_seed(number);
            thread::spawn(move || {
                while stop.load(Ordering::Relaxed) == 0 {
                    let mut speaker = Speaker::new(entry, &dialogue);
                    while speaker.said < dialogue.octets() {
                        let piece = 1 + usize::try_from(rng.below(6)).unwrap();
                        speaker.say(speaker.said + piece);
                        if rng.chance(0.5) {
                            speaker.hear();
                        }
                    }
                    speaker.end_served();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for kill in 1..=KILLS {
        until("exchanges", || done.load(Ordering::Relaxed) >= kill * 6);
        pair.kill(AIR);
        pair.start_again(AIR);
    }
    stop.store(1, Ordering::Relaxed);
    for client in clients {
        client.join().expect("served");
    }
}

#[test]
fn a_client_that_negotiates_is_given_to_the_keeper_that_follows() {
    let (mut pair, dialogue) = pair(false);
    let first = keeper(&pair);
    let mut speakers: Vec<Speaker<'_>> = (0..4)
        .map(|_| {
            let mut speaker = Speaker::new(pair.socks, &dialogue);
            speaker.say(dialogue.words[0].len() + 1);
            speaker.hear();
            speaker
        })
        .collect();
    let held = sockets(first);
    let died = Pid::from_raw(i32::try_from(first).unwrap()).unwrap();
    kill_process(died, Signal::KILL).unwrap();
    until("another keeper", || {
        // Something for the gateway to do, so that it looks.
        drop(TcpStream::connect(pair.entry));
        let air = pair.gateways[AIR].as_ref().unwrap();
        let now = air.children("gateway-keeper").first().copied();
        now.is_some_and(|now| now != first && sockets(now) >= held)
    });
    // The new keeper names its own clients, none of which may be taken for an earlier one.
    let mut others: Vec<Speaker<'_>> = (0..4)
        .map(|_| {
            let mut speaker = Speaker::new(pair.socks, &dialogue);
            speaker.say(dialogue.words[0].len());
            speaker.hear();
            speaker
        })
        .collect();
    // Two go on as flows, one leaves.
    for speaker in &mut speakers[..2] {
        speaker.say(dialogue.octets());
        let mut reply = [0; 10];
        speaker.stream.read_exact(&mut reply).unwrap();
        speaker.heard.extend_from_slice(&reply);
    }
    drop(speakers.pop());
    others.rotate_left(1);
    pair.kill(AIR);
    pair.start_again(AIR);
    for speaker in speakers.into_iter().chain(others) {
        speaker.end_served();
    }
}

#[test]
fn a_keeper_forgets_a_client_however_its_negotiation_ends() {
    let (pair, dialogue) = pair(false);
    let keeper = keeper(&pair);
    // The keeper has accepted it, and so has read everything before it.
    let mut first = Speaker::new(pair.socks, &dialogue);
    first.say(dialogue.words[0].len());
    first.hear();
    let at_rest = sockets(keeper) - 1;
    drop(first);
    until("the keeper to forget it", || sockets(keeper) == at_rest);
    let endings: [&[u8]; 5] = [
        // Leaves with nothing, with half a greeting, and in the middle of a request.
        &[],
        &[5, 2, 0],
        &[5, 1, 0, 5, 1],
        // Offers no method that is allowed; asks for a command that does not exist.
        &[5, 1, 7],
        &[5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80],
    ];
    let clients: Vec<TcpStream> = endings
        .iter()
        .map(|words| {
            let mut stream = client(pair.socks);
            stream.write_all(words).unwrap();
            stream
        })
        .collect();
    for (stream, words) in clients.iter().zip(endings) {
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        let mut stream = stream;
        stream.read_to_end(&mut heard).expect("an end, no reset");
        let last = heard.get(heard.len().saturating_sub(10)..).unwrap_or(&[]);
        match words {
            [5, 1, 7] => assert_eq!(last, [5, 0xFF]),
            [_, _, _, _, 2, ..] => assert_eq!(last[..2], [5, 7]),
            _ => assert!(heard.len() <= 2, "{heard:?}"),
        }
    }
    until("the keeper to forget them", || sockets(keeper) == at_rest);
    // And one that is a relay's.
    let mut relayed = client(pair.socks);
    relayed
        .write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0])
        .unwrap();
    relayed.read_exact(&mut [0; 12]).unwrap();
    until("the keeper to forget it", || sockets(keeper) == at_rest);
    // What it says there hides its end from nobody.
    relayed.write_all(b"words").unwrap();
    relayed.shutdown(Shutdown::Write).unwrap();
    match relayed.read(&mut [0; 1]) {
        Ok(len) => assert_eq!(len, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert_eq!(exchange(client(pair.entry), b"asked".to_vec()), b"asked");
}
