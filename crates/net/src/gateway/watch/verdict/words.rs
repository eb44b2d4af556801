//! The sentence of a link.

use super::super::alarms::LinkGrade;
use super::super::losses::LossFigures;
use super::super::registry::Unit;
use super::super::status::PeerReport;
use super::facts::LinkFacts;
use super::rules::Holds;

/// The share of losses below which a direction loses nothing worth a word.
const NOTHING_LOST: f64 = 0.000_5;
/// The bits a second below which a clause about delivery would be about keep-alives.
const HARDLY_ANYTHING: f64 = super::facts::IDLE_BITS_PER_SECOND;

/// The sentence: what is lost, what is carried, and either "Fine", and whether there are keys, or the first rule that holds, with its cure.
pub(super) fn sentence(facts: &LinkFacts<'_>, first: Option<&Holds>) -> String {
    if facts.is_removed() {
        return "A reload took this peer out.".to_owned();
    }
    let figures = if facts.is_up() {
        figures(facts)
    } else {
        String::new()
    };
    match (first, figures.is_empty()) {
        (None, true) => fine(facts).to_owned(),
        (None, false) => format!("{figures}. {}", fine(facts)),
        (Some(holds), true) => format!("{}; {}.", capital(&holds.words), holds.rule.cure),
        // What makes a link bad that is up is no reason for its figures.
        (Some(holds), false) if holds.rule.grade == LinkGrade::Bad => {
            format!("{figures}. {}; {}.", capital(&holds.words), holds.rule.cure)
        }
        (Some(holds), false) => format!("{figures}: {}; {}.", holds.words, holds.rule.cure),
    }
}

const fn fine(facts: &LinkFacts<'_>) -> &'static str {
    if facts.peer.secure {
        "Fine."
    } else {
        "Fine, but not protected: there are no keys."
    }
}

fn figures(facts: &LinkFacts<'_>) -> String {
    let (lost, carries) = (losses(facts), carried(facts));
    match (lost, carries) {
        (Some(lost), Some(carries)) => format!("{lost}; {carries}"),
        (Some(lost), None) => lost,
        (None, Some(carries)) => capital(&carries),
        (None, None) if facts.is_idle() => "Nothing to carry".to_owned(),
        (None, None) => String::new(),
    }
}

fn losses(facts: &LinkFacts<'_>) -> Option<String> {
    let is_some = |share: &f64| *share >= NOTHING_LOST;
    let (there, here) = (facts.lost_there(), facts.lost_here());
    there.or(here)?;
    let mostly = mostly(facts).map_or_else(String::new, |cause| format!(", mostly {cause}"));
    Some(match (there.filter(is_some), here.filter(is_some)) {
        (None, None) => "Loses nothing".to_owned(),
        (Some(there), Some(here)) => {
            format!(
                "Loses {} there, {} here{mostly}",
                percent(there),
                percent(here)
            )
        }
        (Some(there), None) => format!("Loses {} there, nothing here{mostly}", percent(there)),
        (None, Some(here)) => format!("Loses nothing there, {} here{mostly}", percent(here)),
    })
}

/// The cause of more than half of the losses, on the way there if it is known.
fn mostly(facts: &LinkFacts<'_>) -> Option<&'static str> {
    let of = [&facts.peer.losses, &facts.peer.told_losses];
    of.into_iter().flatten().find_map(LossFigures::main_cause)
}

/// The words for what the link carries, the direction that carries more first.
fn carried(facts: &LinkFacts<'_>) -> Option<String> {
    let received = facts.received();
    let sent = facts.delivered().max(facts.unconfirmed());
    let receives = (received >= HARDLY_ANYTHING && received > sent)
        .then(|| format!("receives {}", rate(received)));
    match (receives, delivery(facts)) {
        (Some(receives), Some(delivers)) => Some(format!("{receives}; {delivers}")),
        (receives, delivers) => receives.or(delivers),
    }
}

/// The words for what reaches the peer, unless it is next to nothing.
fn delivery(facts: &LinkFacts<'_>) -> Option<String> {
    let delivered = facts.delivered();
    let allowed = facts.allowed();
    if let (Some(share), Some(allowed)) = (facts.efficiency(), allowed) {
        if delivered >= allowed {
            // A rate of now beside the payload of ten seconds.
            return Some(format!(
                "delivers {}, all that such a link allows",
                rate(delivered)
            ));
        }
        let (delivered, allowed) = beside(delivered, allowed);
        let share = (100.0 * share).round();
        return Some(format!(
            "delivers {delivered} of the {allowed} that such a link allows ({share:.0} %)"
        ));
    }
    if facts.unconfirmed() > delivered {
        let sent = rate(facts.unconfirmed());
        return Some(format!("sends {sent} without confirmations"));
    }
    if delivered < HARDLY_ANYTHING {
        return None;
    }
    Some(match allowed {
        Some(allowed) => format!(
            "delivers {}, and could deliver {}",
            rate(delivered),
            rate(allowed)
        ),
        None => format!("delivers {}", rate(delivered)),
    })
}

/// Two rates; the first without its unit where the second has the same.
fn beside(one: f64, other: f64) -> (String, String) {
    let (one, other) = (rate(one), rate(other));
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    let number = match one.split_once(' ') {
        Some((number, _)) if unit(&one) == unit(&other) => number.to_owned(),
        _ => one,
    };
    (number, other)
}

fn rate(bits_per_second: f64) -> String {
    Unit::BitsPerSecond.text(bits_per_second)
}

/// A share with one digit behind the point, or two where it is small.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = if percent < 0.95 { 2 } else { 1 };
    format!("{percent:.digits$} %")
}

/// The words for a peer that was never met since the start or since its keys ended, and for how long it was called.
pub(in crate::gateway::watch) fn no_answer_yet(peer: &PeerReport) -> String {
    let at = peer.address.as_ref();
    let at = at.map_or_else(String::new, |address| format!(" at {address}"));
    let lasts = peer.calling_seconds;
    let lasts = lasts.map_or_else(String::new, |lasts| {
        format!(" for {}", Unit::Seconds.text(lasts))
    });
    if at.is_empty() && lasts.is_empty() {
        return format!("no answer from {} yet: it has not called", peer.name);
    }
    format!("no answer from {} yet, called{at}{lasts}", peer.name)
}

pub(in crate::gateway::watch) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
