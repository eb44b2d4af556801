//! The rules of verdicts: a table of those about links and a table of those about the gateway.
//!
//! Rules stand in the order in which they explain: the first that holds is the link's state, and its words and cure end
//! the sentence. All that hold are alarms.

mod conditions;

use super::super::alarms::{Alarm, LinkGrade};
use super::super::registry::Unit;
use super::super::status::{PeerReport, REMOVED};
use super::facts::{GatewayFacts, LinkFacts};
use conditions::{
    beyond_repair, link_told_wrong, loss_high, lost_for_good, marked, outage, path_down,
    path_waits, queue_shared, queue_standing, rate_doubted, rate_too_high, rate_too_low, refused,
    repair_dear, slow, unreachable,
};

/// One rule.
pub struct VerdictRule {
    /// Its name: the state of a link, the label `rule` of `fulmar_alarm`.
    pub name: &'static str,
    /// Its grade.
    pub grade: LinkGrade,
    /// The condition, for the guide.
    pub when: &'static str,
    /// The usual cause.
    pub cause: &'static str,
    /// The cure.
    pub cure: &'static str,
    /// The alert of Prometheus for it.
    pub alert: AlertRule,
    check: Check,
}

/// An alert of Prometheus.
pub struct AlertRule {
    /// Its name.
    pub name: &'static str,
    /// Its condition; empty for the alarm itself.
    pub expr: &'static str,
    /// The time for which the condition must hold, as Prometheus writes it.
    pub lasts: &'static str,
    /// Its severity.
    pub severity: &'static str,
}

#[derive(Clone, Copy)]
enum Check {
    Link(fn(&LinkFacts<'_>) -> Option<String>),
    Gateway(fn(&GatewayFacts<'_>) -> Option<String>),
    /// Prometheus alone sees it: it takes longer than a gateway looks back.
    Prometheus,
}

/// A rule that holds, and its finding in words.
pub(super) struct Holds {
    pub(super) rule: &'static VerdictRule,
    pub(super) words: String,
}

impl Holds {
    pub(super) fn alarm(self, peer: Option<&String>) -> Alarm {
        Alarm {
            rule: self.rule.name,
            grade: self.rule.grade,
            peer: peer.cloned(),
            text: self.words,
            cause: self.rule.cause,
            cure: self.rule.cure,
        }
    }
}

/// The rule about a gateway without keys, which says nothing of how well its links do.
pub(super) const SECURITY_OFF: &str = "security_off";

/// The share of losses from which on a link is called lossy.
const LOSSY: f64 = 0.005;

/// The alert of a rule whose condition is the alarm itself.
const fn alarm_lasts(name: &'static str, lasts: &'static str, severity: &'static str) -> AlertRule {
    AlertRule {
        name,
        expr: "",
        lasts,
        severity,
    }
}

pub(super) static LINK_RULES: &[VerdictRule] = &[
    VerdictRule {
        name: "refused",
        grade: LinkGrade::Bad,
        when: "a handshake with the peer was refused within the last 65 s, here or there, and the link is not up; it is the peer's by its key, or by the address from which it came",
        cause: "The ends do not agree on keys, on security or on a version; another gateway calls with the same key; or a state directory was lost while the clock was behind",
        cure: "do what the reason says, at the end that it names",
        alert: alarm_lasts("FulmarPeerRefused", "1m", "critical"),
        check: Check::Link(refused),
    },
    VerdictRule {
        name: "unreachable",
        grade: LinkGrade::Bad,
        when: "there are no keys with the peer",
        cause: "The peer does not run, its address or port is wrong, or something on the way drops the datagrams",
        cure: "ask it with `fulmar doctor -c FILE`",
        alert: alarm_lasts("FulmarPeerUnreachable", "1m", "critical"),
        check: Check::Link(unreachable),
    },
    VerdictRule {
        name: "outage",
        grade: LinkGrade::Bad,
        when: "the link is held for down: nothing came back for a while that there was something to send",
        cause: "The link, the peer or its address is gone",
        cure: "wait for the link, or ask with `fulmar doctor -c FILE`; flows are ended after [limits] outage",
        alert: alarm_lasts("FulmarLinkDown", "2m", "critical"),
        check: Check::Link(outage),
    },
    VerdictRule {
        name: "path_down",
        grade: LinkGrade::Poor,
        when: "one of several paths to the peer is down, and the link is up",
        cause: "An uplink, its device or its provider is gone; the other paths carry on",
        cure: "look at the device of this path",
        alert: alarm_lasts("FulmarPathDown", "2m", "warning"),
        check: Check::Link(path_down),
    },
    VerdictRule {
        name: "path_waits",
        grade: LinkGrade::Poor,
        when: "a path to the peer waits for a device or an address here",
        cause: "A modem is unplugged, or has no address yet",
        cure: "plug it in, or take the path out of the file",
        alert: alarm_lasts("FulmarPathWaits", "5m", "warning"),
        check: Check::Link(path_waits),
    },
    VerdictRule {
        name: "link_told_wrong",
        grade: LinkGrade::Poor,
        when: "a link's words about itself were found wrong, and are not believed for a while",
        cause: "The modem or its program tells another link's figures, or old ones; or the trouble lies beyond the link that tells",
        cure: "look at what the link tells (`fulmar status`) and at its source, [[link]]",
        alert: alarm_lasts("FulmarLinkToldWrong", "1m", "warning"),
        check: Check::Link(link_told_wrong),
    },
    VerdictRule {
        name: "rate_too_high",
        grade: LinkGrade::Poor,
        when: "the link has carried less than 0.8 of the configured rate for seconds",
        cause: "The rate was told wrong, or the link has become slower",
        cure: "lower `rate` of this [[peer]], or leave it out",
        alert: AlertRule {
            name: "FulmarRateTooHigh",
            // Where a rate is found below a bound, others may have the rest.
            expr: "fulmar_rate_used_bits_per_second < 0.8 * fulmar_rate_bound_bits_per_second unless on (instance, peer) fulmar_rate_queue_seconds",
            lasts: "5m",
            severity: "warning",
        },
        check: Check::Link(rate_too_high),
    },
    VerdictRule {
        name: "rate_too_low",
        grade: LinkGrade::Poor,
        when: "the rate is found below a configured bound, the bound limits, and the link showed much more",
        cause: "The rate was told too low, or the link has become faster",
        cure: "raise `rate` of this [[peer]], or leave it out",
        alert: alarm_lasts("FulmarRateTooLow", "5m", "warning"),
        check: Check::Link(rate_too_low),
    },
    VerdictRule {
        name: "rate_doubted",
        grade: LinkGrade::Poor,
        when: "there is enough to send, and the rate found is less than an eighth of what the link showed, while neither a queue nor a loss says that it is full",
        cause: "The path stalled, or the peer woke up late, while the rate was searched for",
        cure: "it grows by itself, for minutes at worst; start this gateway again, and it is searched for anew; or set `rate` of this [[peer]] to what the link carries",
        alert: alarm_lasts("FulmarRateDoubted", "5m", "warning"),
        check: Check::Link(rate_doubted),
    },
    VerdictRule {
        name: "queue_shared",
        grade: LinkGrade::Poor,
        when: "others are in the queue ahead, there is enough to send, and less than 85 % of what the link allows is delivered",
        cause: "Other traffic of the same link has the rest",
        cure: "set share = \"background\" if it comes first, or share = \"own\" if the link is yours",
        alert: alarm_lasts("FulmarQueueShared", "15m", "info"),
        check: Check::Link(queue_shared),
    },
    VerdictRule {
        name: "queue_standing",
        grade: LinkGrade::Poor,
        when: "what is sent waits 0.1 s or longer in queues ahead, or a standing queue is being emptied",
        cause: "The configured rate is a little too high, or others fill a deep queue",
        cure: "where `rate` of this [[peer]] is configured, lower it or leave it out; where others fill the queue, they need a shorter one",
        alert: alarm_lasts("FulmarQueueStanding", "5m", "warning"),
        check: Check::Link(queue_standing),
    },
    VerdictRule {
        name: "marked",
        grade: LinkGrade::Poor,
        when: "congestion marks hold the rate down, there is enough to send, and less than 85 % of what the link allows is delivered",
        cause: "A router on the way has a queue with others' traffic, and says so",
        cure: "nothing, if the others are to have their share; else give the link to this traffic alone",
        alert: alarm_lasts("FulmarMarked", "15m", "info"),
        check: Check::Link(marked),
    },
    VerdictRule {
        name: "slow",
        grade: LinkGrade::Poor,
        when: "there is enough to send, less than 80 % of what the link allows is delivered, and no rule above says why",
        cause: "The link changes faster than it is followed, the peer is short of processor time, or losses come in ways that cost much repair",
        cure: "look at the decisions, and at the losses by cause",
        alert: alarm_lasts("FulmarLinkSlow", "5m", "warning"),
        check: Check::Link(slow),
    },
    VerdictRule {
        name: "lost_for_good",
        grade: LinkGrade::Poor,
        when: "0.1 % of the packets or more were given up in the window, here or at the peer",
        cause: "The mode of a class gives up what is late or lost, or its parity is too little",
        cure: "nothing, if the class may lose; else another mode or more `overhead`",
        alert: alarm_lasts("FulmarLossForGood", "10m", "warning"),
        check: Check::Link(lost_for_good),
    },
    VerdictRule {
        name: "beyond_repair",
        grade: LinkGrade::Poor,
        when: "damaged datagrams are let in, and 10 % or more of what arrives is beyond repair",
        cause: "More bits are wrong than the parity behind each packet can put right",
        cure: "wait until parity has followed; else a better link: antenna, power, interference",
        alert: alarm_lasts("FulmarBeyondRepair", "10m", "warning"),
        check: Check::Link(beyond_repair),
    },
    VerdictRule {
        name: "loss_high",
        grade: LinkGrade::Poor,
        when: "30 % or more of the datagrams are lost in a direction",
        cause: "Antenna, power, interference, or a queue that overflows",
        cure: "look at the losses by cause, then at the link",
        alert: AlertRule {
            name: "FulmarLossHigh",
            expr: "fulmar_link_loss_ratio > 0.3",
            lasts: "10m",
            severity: "warning",
        },
        check: Check::Link(loss_high),
    },
    VerdictRule {
        name: "repair_dear",
        grade: LinkGrade::Poor,
        when: "there is enough to send, and parity and repetitions are half of what is sent and a quarter more than losses explain",
        cause: "A class with a deadline buys punctuality with copies, or what was not lost is sent again",
        cure: "lower `overhead` of the class, or look at the decisions",
        alert: alarm_lasts("FulmarRepairDear", "10m", "warning"),
        check: Check::Link(repair_dear),
    },
    VerdictRule {
        name: "outages_often",
        grade: LinkGrade::Poor,
        when: "there were more than ten outages within an hour",
        cause: "A link that comes and goes: a moving antenna, a loose plug, a modem that starts again",
        cure: "look when they come, in the event trace or the history",
        alert: AlertRule {
            name: "FulmarOutagesOften",
            expr: "increase(fulmar_link_outages_total[1h]) > 10",
            lasts: "",
            severity: "warning",
        },
        check: Check::Prometheus,
    },
];

pub(super) static GATEWAY_RULES: &[VerdictRule] = &[
    VerdictRule {
        name: SECURITY_OFF,
        grade: LinkGrade::Bad,
        when: "the gateway has no keys, so that nothing is authenticated or encrypted",
        cause: "[security] says kind = \"none\"",
        cure: "in a trial on one machine, nothing; else let `fulmar init` write the files of both ends with their keys, or make a key for each end with `fulmar keygen`",
        alert: alarm_lasts("FulmarSecurityOff", "1m", "critical"),
        check: Check::Gateway(|facts| {
            let words = "there are no keys: whoever is on the way can read and change everything";
            facts.status.is_unprotected.then(|| words.to_owned())
        }),
    },
    VerdictRule {
        name: "stranger_refused",
        grade: LinkGrade::Poor,
        when: "within the last 65 s a caller was refused of whom neither key nor address tells which peer it is, if any, and a link is not up",
        cause: "A peer calls with a key that its [[peer]] here does not have, or with other security; or somebody else calls",
        cure: "if the caller is a peer, do what the reason says; else nothing: it stays outside",
        alert: alarm_lasts("FulmarStrangerRefused", "1m", "info"),
        check: Check::Gateway(|facts| {
            let is_lacking = |peer: &PeerReport| !["up", REMOVED].contains(&peer.link.as_str());
            let why = facts.stranger?;
            let lacks_peer = facts.status.peers.iter().any(is_lacking);
            lacks_peer.then(|| format!("a stranger was refused: {why}"))
        }),
    },
    VerdictRule {
        name: "custody_full",
        grade: LinkGrade::Bad,
        when: "custody has no room: its limit is reached, or its disk is full",
        cause: "Destinations take less than clients bring, or something else fills the disk",
        cure: "make room on the disk, or raise [custody] limit; clients wait, and nothing is lost",
        alert: alarm_lasts("FulmarCustodyFull", "1m", "critical"),
        check: Check::Gateway(|facts| {
            let words =
                "there is no room for custody: clients wait, new flows of peers are refused";
            facts.status.custody_full.then(|| words.to_owned())
        }),
    },
    VerdictRule {
        name: "custody_damaged",
        grade: LinkGrade::Poor,
        when: "files of custody were damaged, and lie aside",
        cause: "A disk that fails, or a machine that lost power",
        cure: "look at the disk; remove `damaged/` of the custody directory",
        alert: alarm_lasts("FulmarCustodyDamaged", "1m", "warning"),
        check: Check::Gateway(|facts| {
            let octets = facts.status.custody_damaged_bytes;
            let words = || {
                format!(
                    "{} of damaged custody lie aside",
                    Unit::Bytes.text(octets as f64)
                )
            };
            (octets > 0).then(words)
        }),
    },
    VerdictRule {
        name: "flows_refused",
        grade: LinkGrade::Poor,
        when: "more than one flow a second is refused",
        cause: "A destination that [egress] does not allow, limits that are reached, or a service that does not run",
        cure: "look at the reasons under Classes, then at [egress] and [limits]",
        alert: alarm_lasts("FulmarFlowsRefused", "5m", "warning"),
        check: Check::Gateway(|facts| {
            let refused = facts.window?.refused_rate;
            (refused > 1.0).then(|| format!("{refused:.1} flows a second are refused"))
        }),
    },
    VerdictRule {
        name: "messages_dropped",
        grade: LinkGrade::Poor,
        when: "more than one message a second is dropped here",
        cause: "More comes than the link carries in time, or messages are longer than a packet",
        cure: "send less, give the class a later deadline or a higher priority",
        alert: alarm_lasts("FulmarMessagesLost", "10m", "warning"),
        check: Check::Gateway(|facts| {
            let dropped = facts.window?.dropped_rate;
            (dropped > 1.0).then(|| format!("{dropped:.1} messages a second are dropped here"))
        }),
    },
    VerdictRule {
        name: "forgeries",
        grade: LinkGrade::Poor,
        when: "more than ten datagrams a second are not genuine",
        cause: "Somebody makes datagrams up or repeats old ones; or a peer has other keys",
        cure: "look who sends them; drop them in the firewall",
        alert: AlertRule {
            name: "FulmarForgeries",
            expr: "sum by (instance) (rate(fulmar_datagrams_dropped_total{reason=~\"forged|replayed|wrong_mac|unknown_peer|flood\"}[5m])) > 10",
            lasts: "5m",
            severity: "warning",
        },
        check: Check::Gateway(|facts| {
            let forged = facts.window?.false_rate;
            (forged > 10.0).then(|| format!("{forged:.0} datagrams a second are not genuine"))
        }),
    },
    VerdictRule {
        name: "recording_holes",
        grade: LinkGrade::Poor,
        when: "the capture or the event trace lacks something",
        cause: "The disk does not keep up, or the recording has reached its largest size",
        cure: "write to a faster disk, or allow a larger file",
        alert: alarm_lasts("FulmarRecordingHoles", "1m", "info"),
        check: Check::Gateway(|facts| {
            let carrier = &facts.status.carrier;
            let missed = carrier.capture_missed_packets + carrier.trace_missed_events;
            (missed > 0).then(|| format!("the recordings lack {missed} packets and events"))
        }),
    },
    VerdictRule {
        name: "messages_missing",
        grade: LinkGrade::Poor,
        when: "more than one message a second stays undelivered, for ten minutes",
        cause: "Messages are lost on the way, or late, in a class that gives them up",
        cure: "give the class more `overhead`, or a later deadline",
        alert: AlertRule {
            name: "FulmarMessagesMissing",
            expr: "sum by (instance, class) (deriv(fulmar_messages_undelivered[5m])) > 1",
            lasts: "10m",
            severity: "warning",
        },
        check: Check::Prometheus,
    },
    VerdictRule {
        name: "gateway_gone",
        grade: LinkGrade::Bad,
        when: "the gateway does not answer Prometheus",
        cause: "The gateway or its machine has stopped, or the way to it is cut",
        cure: "look at its log (`journalctl -u fulmar-gateway@NAME`)",
        alert: AlertRule {
            name: "FulmarGatewayGone",
            expr: "up{job=\"fulmar\"} == 0",
            lasts: "1m",
            severity: "critical",
        },
        check: Check::Prometheus,
    },
    VerdictRule {
        name: "gateway_restarted",
        grade: LinkGrade::Poor,
        when: "the gateway was started again more than twice within an hour",
        cause: "It crashes, or its loop hangs and systemd ends it",
        cure: "look at its log (`journalctl -u fulmar-gateway@NAME`)",
        alert: AlertRule {
            name: "FulmarGatewayRestarted",
            expr: "resets(fulmar_uptime_seconds[1h]) > 2",
            lasts: "",
            severity: "warning",
        },
        check: Check::Prometheus,
    },
];

/// The states of a link for which no rule holds, each with its condition.
pub(super) const CALM_STATES: [(&str, &str); 5] = [
    ("removed", "a reload took the peer out"),
    ("idle", "less than 2 kbit/s is carried in each direction"),
    (
        "unchecked",
        "damaged datagrams are let in (`carrier` without checksum), and mended",
    ),
    (
        "lossy",
        "0.5 % of the datagrams or more are lost in a direction",
    ),
    ("good", "none of these"),
];

/// The state of a link for which no rule holds.
pub(super) fn calm_state(facts: &LinkFacts<'_>) -> &'static str {
    let lost = |share: Option<f64>| share.is_some_and(|share| share >= LOSSY);
    if facts.is_removed() {
        "removed"
    } else if facts.is_idle() {
        "idle"
    } else if facts.peer.damage.is_some() {
        "unchecked"
    } else if lost(facts.lost_there()) || lost(facts.lost_here()) {
        "lossy"
    } else {
        "good"
    }
}

fn holding(rules: &'static [VerdictRule], words: impl Fn(Check) -> Option<String>) -> Vec<Holds> {
    let holds = |rule: &'static VerdictRule| words(rule.check).map(|words| Holds { rule, words });
    rules.iter().filter_map(holds).collect()
}

/// The rules that hold for a link, in order.
pub(super) fn link_alarms(facts: &LinkFacts<'_>) -> Vec<Holds> {
    if facts.is_removed() {
        return Vec::new();
    }
    holding(LINK_RULES, |check| match check {
        Check::Link(rule) => rule(facts),
        Check::Gateway(_) | Check::Prometheus => None,
    })
}

/// The rules that hold for the gateway, in order.
pub(super) fn gateway_alarms(facts: &GatewayFacts<'_>) -> Vec<Holds> {
    holding(GATEWAY_RULES, |check| match check {
        Check::Gateway(rule) => rule(facts),
        Check::Link(_) | Check::Prometheus => None,
    })
}
