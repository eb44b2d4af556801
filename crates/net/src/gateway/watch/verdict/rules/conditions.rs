//! The conditions of the rules about links: each says in words what it found, or nothing.

use super::super::facts::LinkFacts;
use super::super::words::no_answer_yet;
use crate::gateway::watch::registry::Unit;
use crate::gateway::watch::status::RateReport;

/// The share of what a link allows below which it is poor, where something is known that takes the rest.
const MOST_OF_IT: f64 = 0.85;
/// The share of what a link allows below which it is poor, whatever the reason.
const ENOUGH: f64 = 0.8;
/// A queue that stands: longer than any that a search for the rate leaves behind.
const STANDING_QUEUE_SECONDS: f64 = 0.1;
/// The share of datagrams from which on the link itself is poor, however well it is repaired.
const HEAVY_LOSS: f64 = 0.3;
/// The share of packets beyond repair from which on parity is too little.
const MUCH_BEYOND_REPAIR: f64 = 0.1;
/// The share of TPDUs that are given up from which on it is told.
const GIVEN_UP: f64 = 0.001;
/// The share of repair from which on it is dear, and the share by which it exceeds the losses.
const MUCH_REPAIR: f64 = 0.5;
const MUCH_MORE_REPAIR: f64 = 0.25;

fn seconds(seconds: f64) -> String {
    Unit::Seconds.text(seconds)
}

fn percent(ratio: f64) -> String {
    Unit::Ratio.text(ratio)
}

fn rate(bits_per_second: u64) -> String {
    Unit::BitsPerSecond.text(bits_per_second as f64)
}

pub(super) fn refused(facts: &LinkFacts<'_>) -> Option<String> {
    let why = facts.refusal.filter(|_| !facts.is_up())?;
    Some(format!("a handshake was refused: {why}"))
}

pub(super) fn unreachable(facts: &LinkFacts<'_>) -> Option<String> {
    let is_met = facts.is_up() || facts.is_down() || facts.is_removed();
    if is_met || facts.refusal.is_some() {
        return None;
    }
    let words = no_answer_yet(facts.peer);
    let is_waited_for = facts.peer.address.is_none() && facts.peer.calling_seconds.is_none();
    Some(if is_waited_for && facts.stranger_called {
        format!("{words}, unless it is the caller that was refused")
    } else {
        words
    })
}

pub(super) fn outage(facts: &LinkFacts<'_>) -> Option<String> {
    if !facts.is_down() {
        return None;
    }
    let lasts = facts.peer.down_seconds.map(seconds);
    let lasts = lasts.map_or_else(String::new, |lasts| format!(" for {lasts}"));
    let mut links = facts.peer.links.iter();
    if let Some(link) = links.find(|link| link.is_trusted && link.up == Some(false)) {
        return Some(format!(
            "the link {} tells that it is down{lasts}: sending is held, flows wait",
            link.name
        ));
    }
    Some(format!(
        "nothing has come back{lasts}: sending is held, flows wait"
    ))
}

pub(super) fn path_down(facts: &LinkFacts<'_>) -> Option<String> {
    let down = facts.peer.paths.iter().filter(|path| path.state == "down");
    let each: Vec<String> = down
        .map(|path| {
            let lasts = path.down_seconds.map(seconds);
            let lasts = lasts.map_or_else(String::new, |lasts| format!(" for {lasts}"));
            let way = path.way.as_ref();
            let way = way.map_or_else(String::new, |way| format!(" ({way})"));
            format!("path {}{way} is down{lasts}", path.path)
        })
        .collect();
    (facts.is_up() && !each.is_empty()).then(|| each.join(", "))
}

pub(super) fn path_waits(facts: &LinkFacts<'_>) -> Option<String> {
    let waiting = facts.peer.waiting_paths.iter();
    let each: Vec<String> = waiting
        .map(|waiting| format!("the path {} waits: {}", waiting.path, waiting.why))
        .collect();
    (facts.is_up() && !each.is_empty()).then(|| each.join(", "))
}

pub(super) fn link_told_wrong(facts: &LinkFacts<'_>) -> Option<String> {
    let links = facts.peer.links.iter();
    let each: Vec<String> = links
        .filter_map(|link| {
            Some(format!(
                "the link {} is not believed: {}",
                link.name, link.fault?
            ))
        })
        .collect();
    (!each.is_empty()).then(|| each.join(", "))
}

pub(super) fn rate_too_high(facts: &LinkFacts<'_>) -> Option<String> {
    let found = facts.rate().filter(|of| of.declared_wrong)?;
    let configured = facts.peer.rate_bits_per_second?;
    let carries = found.link_bits_per_second.map(rate);
    let carries = carries.map_or_else(String::new, |rate| format!(", which carries {rate}"));
    let configured = rate(configured);
    Some(format!(
        "the configured rate, {configured}, is more than the link has{carries}"
    ))
}

pub(super) fn rate_too_low(facts: &LinkFacts<'_>) -> Option<String> {
    let carries = facts.rate()?.declared_low_beside?;
    let configured = rate(facts.peer.rate_bits_per_second?);
    let carries = rate(carries);
    Some(format!(
        "the configured rate, {configured}, limits, and the link seems to carry {carries}"
    ))
}

pub(super) fn rate_doubted(facts: &LinkFacts<'_>) -> Option<String> {
    let doubted = facts.doubted_rate()?;
    let found = rate(doubted.link_bits_per_second?);
    let seen = rate(doubted.seen_bits_per_second?);
    Some(format!(
        "the rate found, {found}, is far below the {seen} that the link showed, and neither a queue nor a loss says that it is full"
    ))
}

pub(super) fn queue_shared(facts: &LinkFacts<'_>) -> Option<String> {
    let is_shared = facts.rate().is_some_and(RateReport::is_shared);
    let words = "the queue ahead is shared with others";
    (is_shared && facts.efficiency()? < MOST_OF_IT).then(|| words.to_owned())
}

pub(super) fn queue_standing(facts: &LinkFacts<'_>) -> Option<String> {
    let rate = facts.rate()?;
    if rate.reason == "draining" {
        return Some("a standing queue ahead is being emptied".to_owned());
    }
    let waits = rate
        .queue_seconds
        .filter(|waits| *waits >= STANDING_QUEUE_SECONDS)?;
    Some(format!(
        "what is sent now waits {} in queues ahead",
        seconds(waits)
    ))
}

pub(super) fn marked(facts: &LinkFacts<'_>) -> Option<String> {
    let is_marked = facts.rate().is_some_and(|rate| rate.reason == "marks");
    let words = "a queue ahead marks what is sent, and the rate is held down";
    (is_marked && facts.efficiency()? < MOST_OF_IT).then(|| words.to_owned())
}

/// Little arrives, and no rule above says why.
pub(super) fn slow(facts: &LinkFacts<'_>) -> Option<String> {
    let rules = [
        queue_shared,
        queue_standing,
        marked,
        rate_too_high,
        rate_doubted,
    ];
    let is_explained = rules.iter().any(|rule| rule(facts).is_some());
    let words = "less is delivered than the losses explain";
    (!is_explained && facts.efficiency()? < ENOUGH).then(|| words.to_owned())
}

pub(super) fn lost_for_good(facts: &LinkFacts<'_>) -> Option<String> {
    let window = facts.window.filter(|_| facts.is_up())?;
    let told = |share: Option<f64>, place: &str| {
        let share = share.filter(|share| *share >= GIVEN_UP)?;
        Some(format!(
            "{} of the packets are lost for good {place}",
            percent(share)
        ))
    };
    let enough = |share: Option<f64>, loss| share.filter(|_| LinkFacts::is_enough(loss));
    let there = told(enough(window.far_residual_share, window.outward), "there");
    let here = told(enough(window.residual_share, window.inward), "here");
    let both: Vec<String> = there.into_iter().chain(here).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

pub(super) fn beyond_repair(facts: &LinkFacts<'_>) -> Option<String> {
    let damage = facts.peer.damage.filter(|_| facts.is_up())?;
    let share = [damage.outward, damage.inward].into_iter();
    let most = share
        .filter_map(|way| way.residual_ratio)
        .fold(0.0, f64::max);
    (most >= MUCH_BEYOND_REPAIR)
        .then(|| format!("{} of what arrives is damaged beyond repair", percent(most)))
}

pub(super) fn loss_high(facts: &LinkFacts<'_>) -> Option<String> {
    let ways = [facts.lost_there(), facts.lost_here()];
    let most = ways.into_iter().flatten().fold(0.0, f64::max);
    (facts.is_up() && most >= HEAVY_LOSS).then(|| "the link itself is poor".to_owned())
}

pub(super) fn repair_dear(facts: &LinkFacts<'_>) -> Option<String> {
    let share = facts.window?.repair_share.filter(|_| facts.is_busy())?;
    let beyond = facts.lost_there().unwrap_or(0.0) + MUCH_MORE_REPAIR;
    (share >= MUCH_REPAIR && share >= beyond).then(|| {
        format!(
            "parity and repetitions are {} of what is sent",
            percent(share)
        )
    })
}
