//! The examples over a link that loses packets.

#[expect(dead_code, reason = "its main function is the program's")]
#[path = "../examples/both_ends.rs"]
mod both_ends;
#[expect(dead_code, reason = "its main function is the program's")]
#[path = "../examples/chat.rs"]
mod chat;
#[expect(dead_code, reason = "its main function is the program's")]
#[path = "../examples/sensor.rs"]
mod sensor;

use crate::link::{PATIENCE, pair};
use std::time::Duration;

#[test]
fn the_guide_s_program_is_the_example_and_says_what_the_guide_says() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/library.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, program) = guide.split_once("```rust\n").expect("a block of Rust");
    let (program, below) = program.split_once("```").expect("its end");
    assert_eq!(program, include_str!("../examples/both_ends.rs"));
    let (question, answer) = both_ends::ask("how are you?").expect("both ends are done");
    let said = format!("It prints `{question} - {answer}`");
    assert!(below.trim_start().starts_with(&said), "the guide on {said}");
}

#[test]
fn two_ends_chat_over_loss() {
    let (link, server, client, key) = pair(0.3);
    let listener = server.listen().unwrap();
    let stream = client.connect(link.address, &key.public()).unwrap();
    let (mut here, mut there) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = listener.accept(Some(PATIENCE)).unwrap();
            chat::talk(&stream, &b"who is it?\ncome in\n"[..], &mut there).unwrap();
        });
        chat::talk(&stream, &b"knock\nme\n"[..], &mut here).unwrap();
    });
    assert_eq!(here, b"who is it?\ncome in\n");
    assert_eq!(there, b"knock\nme\n");
}

#[test]
fn a_sensor_s_readings_come_in_order_and_its_alarm_with_them() {
    let (link, server, client, key) = pair(0.2);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    let mut lines = Vec::new();
    let other = std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            let other = listener.accept_messages(Some(PATIENCE)).unwrap();
            sensor::collect(&other, &mut lines).unwrap();
            other
        });
        sensor::measure(&messages, 92..=101, Duration::from_millis(10)).unwrap();
        collecting.join().unwrap()
    });
    let lines = String::from_utf8(lines).unwrap();
    let readings: Vec<u32> = lines
        .lines()
        .filter_map(|line| line.strip_prefix("reading ")?.parse().ok())
        .collect();
    assert!(readings.is_sorted(), "{lines}");
    // A machine that stood still for a second may have made some late, which is then known.
    let late = messages.expired().here + other.expired().arrived_late;
    assert_eq!(lines.lines().count() as u64 + late, 11, "{lines}");
}
