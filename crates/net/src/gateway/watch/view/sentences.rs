//! The sentences on a peer beside its verdict: its rate, paths, damage, lengths and losses.

use super::super::losses::LossFigures;
use super::super::registry;
use super::super::status::{
    DamageFigures, LengthFigures, PathFigures, PeerReport, REMOVED, ToldLinkReport, WaitingPath,
};
use super::super::verdict::{capital, no_answer_yet};

/// Further sentences on the state of a peer.
pub(super) fn says(peer: &PeerReport) -> String {
    let age = |seconds: f64| registry::Unit::Seconds.text(seconds);
    let mut text = match (peer.link.as_str(), peer.down_seconds) {
        ("up", _) => "Datagrams pass.".to_owned(),
        (REMOVED, _) => "A reload took this peer out.".to_owned(),
        (_, Some(seconds)) => format!(
            "Nothing has come back for {}: sending is held, flows wait.",
            age(seconds)
        ),
        ("down", None) => "Nothing comes back: sending is held, flows wait.".to_owned(),
        _ => format!("{}.", capital(&no_answer_yet(peer))),
    };
    if !peer.secure && peer.link == "up" {
        text.push_str(" Not protected: whoever is on the way can read and change it.");
    }
    if let Some(way) = &peer.reached {
        text.push_str(" Reached ");
        text.push_str(way);
        text.push('.');
    }
    text.push_str(&custody_in_words(peer));
    if let Some(rate) = peer.rate.filter(|rate| rate.reason != "declared") {
        let begins = match (rate.is_found(), rate.share) {
            (false, _) => " The rate is held down: ",
            (true, "own") => " The rate is found, for the link is ours alone: ",
            (true, "background") => " The rate is found, and others come first: ",
            (true, _) => " The rate is found, and shared fairly: ",
        };
        text.push_str(begins);
        text.push_str(rate.why);
        text.push('.');
        if rate.declared_low_beside.is_some() {
            text.push_str(" The link seems to carry more than configured.");
        }
    }
    text.push_str(&paths_in_words(&peer.paths));
    text.push_str(&waits_in_words(&peer.waiting_paths));
    for link in &peer.links {
        text.push_str(&link_in_words(link));
    }
    if let Some(damage) = peer.damage.as_ref().filter(|_| peer.carrier != "udp") {
        text.push_str(&damage_in_words(damage));
    }
    text.push_str(&length_in_words(peer.length.as_ref()));
    text.push_str(&LossFigures::in_words(peer.losses.as_ref()));
    text.push_str(&LossFigures::told_in_words(peer.told_losses.as_ref()));
    text
}

/// One sentence on what is kept for a peer and for gateways behind it.
fn custody_in_words(peer: &PeerReport) -> String {
    let each = peer.custody.iter().map(|kept| {
        let octets = registry::Unit::Bytes.text(kept.kept_bytes as f64);
        if kept.gateway == peer.name {
            format!("{octets} for it")
        } else {
            format!("{octets} for {} behind it", kept.gateway)
        }
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        String::new()
    } else {
        format!(" In custody: {}.", each.join(", "))
    }
}

/// One sentence on the paths to a peer, if there are several.
fn paths_in_words(paths: &[PathFigures]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let each: Vec<String> = paths.iter().map(path_in_words).collect();
    format!(" Paths: {}.", each.join("; "))
}

/// A sentence on each path to a peer that waits.
fn waits_in_words(waiting: &[WaitingPath]) -> String {
    let mut text = String::new();
    for WaitingPath { path, why } in waiting {
        for word in [" The path ", path, " waits: ", why, "."] {
            text.push_str(word);
        }
    }
    text
}

/// One sentence on a link that tells of itself.
fn link_in_words(link: &ToldLinkReport) -> String {
    let seconds = |seconds: f64| registry::Unit::Seconds.text(seconds);
    let Some(age) = link.age_seconds else {
        return format!(" Link {} tells nothing.", link.name);
    };
    let up = link.up.map(|up| if up { "up" } else { "down" }.to_owned());
    let rate = link.rate_out_bits_per_second;
    let rate = rate.map(|rate| registry::Unit::BitsPerSecond.text(rate as f64));
    let ceiling = link.ceiling_out_bits_per_second;
    let ceiling = ceiling.map(|rate| {
        let rate = registry::Unit::BitsPerSecond.text(rate as f64);
        format!("at most {rate} on its medium")
    });
    let power = link
        .signal_dbm
        .map(|dbm| format!("received at {dbm:.0} dBm"));
    let signal = link.signal_to_noise_decibels;
    let signal = signal.map(|decibels| format!("{decibels:.1} dB above the noise"));
    let bits = link.bit_error_ratio_out;
    let bits = bits.map(|ratio| format!("{ratio:.0e} of the bits wrong"));
    let queue = link
        .queue_seconds
        .map(|queue| format!("a queue of {}", seconds(queue)));
    let outage = link.next_outage_in_seconds.zip(link.next_outage_seconds);
    let outage = outage.map(|(begins, lasts)| {
        if begins > 0.0 {
            format!("an outage of {} in {}", seconds(lasts), seconds(begins))
        } else {
            format!("back in {}", seconds(lasts))
        }
    });
    let told: Vec<String> = [up, rate, ceiling, power, signal, bits, queue, outage]
        .into_iter()
        .flatten()
        .collect();
    let mut text = format!(
        " Link {} told {} ago: {}.",
        link.name,
        seconds(age),
        told.join(", ")
    );
    if let Some(fault) = link.fault {
        for word in [" It is not believed: ", fault, "."] {
            text.push_str(word);
        }
    }
    text
}

/// A path in words: whether it carries data, at which rate, with which round trip and loss, and how often it was down.
fn path_in_words(path: &PathFigures) -> String {
    let mut text = format!("{} {}", path.path, path.state);
    if path.cost > 0 {
        text = format!("{text} at cost {}", path.cost);
    }
    if let Some(seconds) = path.down_seconds {
        return format!("{text} for {}", registry::Unit::Seconds.text(seconds));
    }
    let rate = path.rate.map(|rate| rate.current_bits_per_second as f64);
    let rate = rate.map(|rate| registry::Unit::BitsPerSecond.text(rate));
    let round_trip = path
        .rtt_seconds
        .map(|rtt| registry::Unit::Seconds.text(rtt));
    let round_trip = round_trip.map(|rtt| format!("round trip {rtt}"));
    let lost = path.rate.and_then(|rate| rate.random_loss_ratio);
    let lost = lost.map(|lost| format!("loses {}", registry::Unit::Ratio.text(lost)));
    let cause = path.losses.as_ref().and_then(LossFigures::largest_in_words);
    let outages = (path.outages > 0).then(|| {
        let lasted = registry::Unit::Seconds.text(path.outage_seconds);
        let times = match path.outages {
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            times => format!("{times} times"),
        };
        format!("was down {times} for {lasted} in all")
    });
    for figure in [rate, round_trip, lost, cause, outages]
        .into_iter()
        .flatten()
    {
        text = format!("{text}, {figure}");
    }
    text
}

/// One sentence on shorter packets to a peer, if streams are cut for such.
fn length_in_words(length: Option<&LengthFigures>) -> String {
    let cut = length.and_then(|length| Some((length.packet_bytes?, length.bit_error_ratio)));
    cut.map_or_else(String::new, |(octets, rate)| {
        format!(" Streams are cut for packets of {octets} octets: {rate:.0e} of the bits to it seem to be wrong, and what is damaged is dropped.")
    })
}

/// One sentence on the damage on the way to a peer.
fn damage_in_words(damage: &DamageFigures) -> String {
    let words = match damage.words {
        0 => "no word of parity".to_owned(),
        1 => "1 word of parity".to_owned(),
        words => format!("{words} words of parity"),
    };
    let out = &damage.outward;
    match (out.bit_error_ratio, out.residual_ratio) {
        (Some(rate), Some(residual)) => format!(
            " Damage is let in: {rate:.0e} of the bits to it are wrong, {words} behind each full packet leave {} of the packets beyond repair.",
            registry::Unit::Ratio.text(residual)
        ),
        _ => format!(
            " Damage is let in: {words} behind each full packet, until the peer tells of it."
        ),
    }
}
