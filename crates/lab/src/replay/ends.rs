//! The time that the ends of a link take for a packet: that of their programs and kernels, which is no part of the link but of
//! every round trip.
//!
//! An end that answers what arrives sends soon behind an arrival. The time in between is seen where the recording was taken, and
//! needs nothing of what the packets say. Half a millisecond decides whether a repetition goes before a message or behind it.

use super::seen::{Seen, quantile};

/// The longest time behind an arrival after which a packet may be an answer to it.
const AT_ONCE_S: f64 = 0.0005;
/// The part of an end's packets that follow an arrival so soon where the end answers, and the least number of them.
const ANSWERS: f64 = 0.5;
const ANSWERS_MIN: usize = 32;

/// The time that an end takes for a packet, in seconds, by what both ends do: one that sends at a pace of its own follows an
/// arrival by chance, so the quicker end counts for both.
pub(super) fn end_s(there: &[Seen], back: &[Seen]) -> f64 {
    let both = [answers_after(there, back), answers_after(back, there)];
    let quicker = both.into_iter().flatten().min_by(f64::total_cmp);
    quicker.unwrap_or_default()
}

/// The time in which the end answers at which `came` arrives and from which `sent` goes, if it answers at once.
fn answers_after(came: &[Seen], sent: &[Seen]) -> Option<f64> {
    let mut arrivals: Vec<f64> = came.iter().filter_map(|packet| packet.arrived).collect();
    arrivals.sort_by(f64::total_cmp);
    let after = |packet: &Seen| {
        let before = arrivals.partition_point(|arrived| *arrived <= packet.sent);
        let last = arrivals.get(before.checked_sub(1)?)?;
        Some(packet.sent - last).filter(|after| *after <= AT_ONCE_S)
    };
    let answers: Vec<f64> = sent.iter().filter_map(after).collect();
    let many = answers.len() >= ANSWERS_MIN && answers.len() as f64 >= ANSWERS * sent.len() as f64;
    many.then(|| quantile(answers, 0.5))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(sent: f64, arrived: f64) -> Seen {
        Seen {
            sent,
            octets: 100.0,
            arrived: Some(arrived),
        }
    }

    /// A packet every 5 ms that takes 20 ms.
    fn there() -> Vec<Seen> {
        (0..400)
            .map(|number| f64::from(number) * 0.005)
            .map(|sent| seen(sent, sent + 0.02))
            .collect()
    }

    /// An answer to every second one, behind it by as much as this.
    fn answers(after: impl Fn(usize) -> f64) -> Vec<Seen> {
        let arrivals = there().into_iter().step_by(2).enumerate();
        let answer = |(number, packet): (usize, Seen)| {
            let sent = packet.sent + 0.02 + after(number);
            seen(sent, sent + 0.02)
        };
        arrivals.map(answer).collect()
    }

    #[test]
    fn an_end_that_answers_at_once_shows_the_time_it_takes() {
        let late = |number: usize| {
            if number.is_multiple_of(4) {
                0.003
            } else {
                0.000_15
            }
        };
        assert!((end_s(&there(), &answers(late)) - 0.000_15).abs() < 1e-9);
        assert!(
            end_s(&there(), &answers(|_| 0.0)).abs() < 1e-9,
            "in virtual time"
        );
    }

    #[test]
    fn an_end_that_waits_for_something_else_shows_nothing() {
        assert!(end_s(&there(), &answers(|_| 0.002)).abs() < 1e-12);
        assert!(end_s(&there(), &[]).abs() < 1e-12);
        let few = answers(|_| 0.000_15).split_off(200 - ANSWERS_MIN + 1);
        assert!(end_s(&there(), &few).abs() < 1e-12);
    }
}
