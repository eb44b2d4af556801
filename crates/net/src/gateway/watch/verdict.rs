//! One sentence on each link, made from figures by rules, and the alarms of a gateway as one list.
//!
//! [`rules`] has the rules, each with its condition, cause and cure: `docs/guide/verdicts.md` and the alert rules for
//! Prometheus are made from the same table. [`facts`] has the figures that the rules ask for, [`words`] the sentence.

mod document;
mod facts;
mod rules;
mod words;

use super::alarms::{LinkGrade, LinkVerdict};
use super::status::Status;
use super::tally::Window;
use facts::{GatewayFacts, LinkFacts};
use rules::Holds;

pub(super) use words::{capital, no_answer_yet};

pub use document::{alert_rules, document};
pub use rules::{AlertRule, VerdictRule};

/// Gives each link of a status its verdict, and the status its alarms, the worst first.
pub(super) fn judge(status: &mut Status, window: Option<&Window>) {
    let stranger = facts::refusal(status, None);
    let of_gateway = rules::gateway_alarms(&GatewayFacts {
        status,
        window,
        stranger,
    });
    let mut alarms = Vec::new();
    let mut verdicts = Vec::new();
    for (n, peer) in status.peers.iter().enumerate() {
        let facts = LinkFacts {
            peer,
            window: window.and_then(|window| window.peers.get(n)),
            refusal: facts::refusal(status, Some(&peer.name)),
            stranger_called: stranger.is_some(),
        };
        let found = rules::link_alarms(&facts);
        verdicts.push(verdict(&facts, &found));
        alarms.extend(found.into_iter().map(|holds| holds.alarm(Some(&peer.name))));
    }
    for (peer, verdict) in status.peers.iter_mut().zip(verdicts) {
        peer.verdict = verdict;
    }
    alarms.extend(of_gateway.into_iter().map(|holds| holds.alarm(None)));
    alarms.sort_by_key(|alarm| core::cmp::Reverse(alarm.grade));
    status.alarms = alarms;
    status.grade = worst(status);
}

/// The worst grade of links and alarms, the want of keys apart: it is no word on how well a gateway does.
fn worst(status: &Status) -> LinkGrade {
    let links = status.peers.iter().map(|peer| peer.verdict.grade);
    let alarms = status.alarms.iter();
    let alarms = alarms.filter(|alarm| alarm.rule != rules::SECURITY_OFF);
    links
        .chain(alarms.map(|alarm| alarm.grade))
        .max()
        .unwrap_or_default()
}

fn verdict(facts: &LinkFacts<'_>, holding: &[Holds]) -> LinkVerdict {
    let first = holding.first();
    LinkVerdict {
        grade: holding
            .iter()
            .map(|holds| holds.rule.grade)
            .max()
            .unwrap_or_default(),
        state: first.map_or_else(|| rules::calm_state(facts), |holds| holds.rule.name),
        text: words::sentence(facts, first),
    }
}

#[cfg(test)]
mod tests;
