//! Tables: every form, and every mistake with its line, column and remedy.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be read is a failed case"
)]

use fulmar_channel::LossTrace;
use fulmar_trace::{Losses, SequenceOptions, TableContent, read_table};
use proptest::prelude::*;

fn read(text: &str) -> Result<TableContent, String> {
    read_with(text, SequenceOptions::default())
}

fn read_with(text: &str, options: SequenceOptions) -> Result<TableContent, String> {
    read_table("t.csv", text.as_bytes(), options).map_err(|error| error.to_string())
}

/// A table of packets that came, by their numbers.
fn sequence(numbers: impl Iterator<Item = u64>) -> String {
    let rows: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("sequence\n{}\n", rows.join("\n"))
}

fn losses(recording: TableContent) -> Losses {
    match recording {
        TableContent::Packets(losses) => losses,
        TableContent::Time(_) => panic!("packets were expected"),
    }
}

fn digits(losses: &Losses) -> String {
    let packets = losses.packets();
    (0..packets.len())
        .map(|index| {
            if packets.get(index).unwrap() {
                '1'
            } else {
                '0'
            }
        })
        .collect()
}

#[test]
fn a_row_for_each_packet_with_and_without_a_head() {
    for text in [
        "0\n1\n1\n0\n",
        "lost\n0\n1\n1\n0",
        "\u{feff}lost\r\n0\r\n\r\n# note\r\n1\r\n1\r\n0\r\n",
    ] {
        assert_eq!(digits(&losses(read(text).unwrap())), "0110", "{text:?}");
    }
    let timed = losses(read("node,lost,sent_s\na,0,1.5\nb,1,\"2\"\nc,0,3.5\n").unwrap());
    assert_eq!(digits(&timed), "010");
    assert_eq!((timed.duration(), timed.is_timed()), (Some(2.0), true));
}

#[test]
fn numbers_of_packets_that_came_tell_those_that_did_not() {
    let text = "sequence,arrival_s\n10,1.0\n11,1.1\n14,1.4\n13,1.45\n13,1.46\n15,1.5\n";
    let losses = losses(read(text).unwrap());
    assert_eq!(digits(&losses), "001000");
    let counts = losses.counts;
    assert_eq!(
        (losses.received(), counts.duplicates, counts.reordered),
        (5, 1, 1)
    );
    assert_eq!(losses.duration(), Some(0.5));
}

#[test]
fn numbers_wrap_around() {
    let options = SequenceOptions {
        bits: Some(4),
        window: 4,
    };
    let rows: Vec<String> = [13, 14, 0, 1, 15, 3, 2, 7]
        .iter()
        .map(u32::to_string)
        .collect();
    let text = format!("sequence\n{}\n", rows.join("\n"));
    let losses = losses(read_with(&text, options).unwrap());
    assert_eq!(digits(&losses), "00000001110");
    assert_eq!(losses.counts.reordered, 2);
}

#[test]
fn what_comes_behind_the_window_is_lost_and_counted_as_late() {
    let options = SequenceOptions {
        bits: None,
        window: 3,
    };
    let text = "sequence\n1\n2\n4\n5\n6\n7\n3\n8\n";
    let losses = losses(read_with(text, options).unwrap());
    assert_eq!(digits(&losses), "00100000");
    assert_eq!((losses.counts.late, losses.received()), (1, 7));
}

#[test]
fn a_sender_that_starts_again_breaks_the_row_and_a_stray_number_does_not() {
    let options = SequenceOptions {
        bits: Some(16),
        window: 100,
    };
    let rows = |numbers: &[u32]| {
        let rows: Vec<String> = numbers.iter().map(u32::to_string).collect();
        format!("sequence\n{}\n", rows.join("\n"))
    };
    let again = losses(read_with(&rows(&[500, 501, 503, 5, 6, 8]), options).unwrap());
    assert_eq!(digits(&again), "00100010");
    assert_eq!((again.counts.restarts, again.counts.strays), (1, 0));
    let breaks = again
        .groups()
        .iter()
        .filter(|group| group.step.is_infinite())
        .count();
    assert_eq!(
        breaks,
        2,
        "the beginning and the restart: {:?}",
        again.groups()
    );
    let stray = losses(read_with(&rows(&[500, 501, 9, 502, 503]), options).unwrap());
    assert_eq!(digits(&stray), "0000");
    assert_eq!((stray.counts.restarts, stray.counts.strays), (0, 1));
}

#[test]
fn the_loss_by_time_has_two_forms() {
    for text in [
        "duration_s,loss\n1.5,0\n0.5,100%\n0.5,0.25\n",
        "start_s,loss\n10,0\n11.5,1\n12,25%\n",
    ] {
        let LossTrace::Time(trace) = read(text).unwrap().into_trace() else {
            panic!("by time")
        };
        assert_eq!(trace.length().as_millis(), 2500, "{text}");
        let mean = LossTrace::Time(trace).mean_loss().value();
        assert!((mean - 0.625 / 2.5).abs() < 1e-12, "{text}: {mean}");
    }
}

/// Tables with a mistake, and the beginning of the error about each.
const MISTAKES: [(&str, &str); 21] = [
    ("", "t.csv: there is nothing in it; a table has"),
    ("\n# only this\n", "t.csv: there is nothing in it"),
    ("lost\n", "t.csv: there is no row in it"),
    (
        "lsot\n0\n",
        "t.csv:1: `columns`: `lsot` are none that are known; name them in the first line: lost",
    ),
    (
        "lost,sequence\n0,1\n",
        "t.csv:1: `columns`: say two things at once; keep one of",
    ),
    (
        "lost\n0\n2\n",
        "t.csv:3: `lost`: `2` is not 0 (came) or 1 (lost)",
    ),
    ("lost\n0\n\nyes\n", "t.csv:4: `lost`: `yes` is not"),
    ("0\n1\n-1\n", "t.csv:3: `lost`: `-1` is not"),
    (
        "sent_s,lost\n1,0\n0.5,0\n",
        "t.csv:3: `sent_s`: goes back; give the packets in the order",
    ),
    (
        "sent_s,lost\nsoon,0\n",
        "t.csv:2: `sent_s`: `soon` is not a time in seconds, such as 12.5",
    ),
    (
        "sent_s,lost\nNaN,0\n",
        "t.csv:2: `sent_s`: `NaN` is not a time",
    ),
    (
        "sent_s,lost\n1e300,0\n",
        "t.csv:2: `sent_s`: `1e300` is not a time",
    ),
    ("sent_s,lost\n1\n", "t.csv:2: `lost`: `` is not 0"),
    (
        "sequence\n-5\n",
        "t.csv:2: `sequence`: `-5` is not a whole number",
    ),
    (
        "sequence\n1.5\n",
        "t.csv:2: `sequence`: `1.5` is not a whole number",
    ),
    (
        "sequence,arrival_s\n1,x\n",
        "t.csv:2: `arrival_s`: `x` is not a time",
    ),
    (
        "duration_s,loss\n-1,0\n",
        "t.csv:2: `duration_s`: `-1` is not 0 or more",
    ),
    (
        "duration_s,loss\n1,110%\n",
        "t.csv:2: `loss`: `110%` is not a share",
    ),
    (
        "duration_s,loss\n0,1\n",
        "t.csv: there is no row in it that says something",
    ),
    (
        "start_s,loss\n1,0\n1,1\n",
        "t.csv:3: `start_s`: must be later than in the row before",
    ),
    (
        "start_s,loss\n5,0\n",
        "t.csv: there is no row in it that says something",
    ),
];

#[test]
fn each_mistake_is_answered_with_its_line_its_column_and_a_remedy() {
    for (text, expected) in MISTAKES {
        let refused = read(text).unwrap_err();
        assert!(refused.starts_with(expected), "{text:?}: {refused}");
        assert_eq!(refused.lines().count(), 1);
    }
    let long = read(&format!("lost\n{}\n", "0".repeat(5000))).unwrap_err();
    assert!(
        long.starts_with("t.csv:2: `line`: the line is longer than 4096 octets"),
        "{long}"
    );
    let binary = read_table(
        "t.csv",
        &b"lost\n\xff\xfe\n"[..],
        SequenceOptions::default(),
    );
    assert!(
        binary
            .unwrap_err()
            .to_string()
            .starts_with("t.csv:2: `line`: is no text")
    );
}

#[test]
fn jumps_cannot_make_a_small_file_fill_the_memory() {
    // Each row jumps by almost a million: 400 rows would be 400 million packets.
    let numbers = (0..400_u64).map(|row| row * 999_999);
    let refused = read(&sequence(numbers)).unwrap_err();
    assert!(
        refused.contains("a trace holds at most 268435456 packets; cut it"),
        "{refused}"
    );
}

proptest! {
    #[test]
    fn nothing_that_is_read_makes_it_panic(
        text in "(lost|sequence|arrival_s|sent_s|start_s|duration_s|loss|[0-9.,%e-]|\n|\r|\"|#){0,60}",
        octets in prop::collection::vec(any::<u8>(), 0..200),
        bits in prop::option::of(4_u32..=63),
        window in 1_u32..50,
    ) {
        let options = SequenceOptions { bits, window };
        let first = read_with(&text, options);
        if let Ok(TableContent::Packets(losses)) = &first {
            prop_assert_eq!(losses.lost() + losses.received(), digits(losses).len() as u64);
        }
        let second = read_table("t.csv", octets.as_slice(), options);
        prop_assert!(second.is_ok() || !second.unwrap_err().to_string().is_empty());
    }

    /// Whatever is dropped, duplicated and shuffled within the window, the losses are the dropped
    /// packets.
    #[test]
    fn losses_survive_disorder(
        fates in prop::collection::vec(any::<bool>(), 50..400),
        start in any::<u16>(),
        seed in any::<u64>(),
    ) {
        const WINDOW: u32 = 32;
        let mut rng = fulmar_proto::rng::Rng::from_seed(seed);
        let mut came = Vec::new();
        for (index, &lost) in fates.iter().enumerate() {
            // The first and the last packet came, since nothing is known beyond what came.
            if !lost || index == 0 || index + 1 == fates.len() {
                let late = rng.below(u64::from(WINDOW / 2));
                came.push((index as u64 + late, index));
                if rng.chance(0.1) {
                    came.push((index as u64 + late + 1, index));
                }
            }
        }
        came.sort_unstable();
        let number = |index: usize| start.wrapping_add(u16::try_from(index).unwrap());
        let numbers = came.iter().map(|&(_, index)| u64::from(number(index)));
        let options = SequenceOptions { bits: Some(16), window: WINDOW };
        let losses = losses(read_with(&sequence(numbers), options).unwrap());
        let last = fates.len() - 1;
        let expected: String = fates
            .iter()
            .enumerate()
            .map(|(index, &lost)| if lost && index != 0 && index != last { '1' } else { '0' })
            .collect();
        prop_assert_eq!(digits(&losses), expected);
    }
}
