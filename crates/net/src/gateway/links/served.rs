//! The links of a gateway: each with its source, its last message and the trust in it.

use super::heard::{Heard, LinkWord};
use super::lack::SourceLack;
use super::report::ToldLinkReport;
use super::source::Source;
use crate::clock::unix_time;
use crate::gateway::GatewayError;
use crate::gateway::Link;
use crate::gateway::config::{GatewayConfig, LinkSource, ToldLinkSettings};
use crate::gateway::peers::index_of;
use crate::gateway::repeats::Repeats;
use crate::gateway::sockets::{Poller, Sockets};
use fulmar_proto::machine::PathId;
use fulmar_proto::told::{LinkEvidence, ToldFacts, ToldLink};
use fulmar_proto::units::{BitErrorRate, Bitrate, Duration, Instant};
use std::io;

/// The time after which a link that has told wrong lines is complained about again.
const COMPLAIN_AGAIN: Duration = Duration::from_secs(60);

/// A link that tells of itself.
#[derive(Debug)]
struct ServedLink {
    settings: ToldLinkSettings,
    /// The outer path that it serves; none for the peer's own address.
    outer: Option<PathId>,
    source: Source,
    told: ToldLink,
    /// The facts that the session took last.
    taken: ToldFacts,
    repeats: Repeats,
    messages: u64,
    wrong: u64,
    complained_at: Option<Instant>,
    /// The reason why its source tells nothing, as the log had it last.
    lack: Option<SourceLack>,
    /// Whether a socket of its source rang, and the time of the next turn.
    is_rung: bool,
    next: Option<Instant>,
}

/// All of them.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Links(Vec<ServedLink>);

impl Links {
    /// Opens the sources.
    ///
    /// # Errors
    /// [`GatewayError::ToldLink`], [`GatewayError::Schedule`]: a source cannot be had.
    pub(in crate::gateway) fn open(config: &GatewayConfig) -> Result<Self, GatewayError> {
        let open = |settings: &ToldLinkSettings| {
            let source = Source::open(settings)?;
            Ok(ServedLink {
                settings: settings.clone(),
                outer: None,
                next: source.next_at(),
                source,
                told: ToldLink::default(),
                taken: ToldFacts::default(),
                repeats: Repeats::default(),
                messages: 0,
                wrong: 0,
                complained_at: None,
                lack: None,
                is_rung: false,
            })
        };
        let links: Result<Vec<_>, _> = config.links.iter().map(open).collect();
        links.map(Self)
    }

    /// Tries the schedules of a configuration, and says each in words.
    ///
    /// # Errors
    /// [`GatewayError::Schedule`]: one cannot be used.
    pub(in crate::gateway) fn check(config: &GatewayConfig) -> Result<Vec<String>, GatewayError> {
        let is_schedule = |link: &&ToldLinkSettings| matches!(link.source, LinkSource::Schedule(_));
        let schedules = config.links.iter().filter(is_schedule);
        let said = schedules.map(|link| {
            let words = Source::open(link)?.plan_in_words(unix_time());
            Ok(words.map(|words| format!("link `{}` is, by its schedule, {words}", link.name)))
        });
        said.filter_map(Result::transpose).collect()
    }

    /// Takes the outer path of a further path: the number-th to the peer in this place.
    pub(in crate::gateway) fn serve(&mut self, (peer, number): (usize, usize), path: PathId) {
        for link in &mut self.0 {
            if (link.settings.peer, link.settings.path) == (peer, number) {
                link.outer = Some(path);
            }
        }
    }

    /// Waits for what is said.
    ///
    /// # Errors
    /// No descriptor can be watched any more.
    pub(in crate::gateway) fn watch(&mut self, sockets: &mut Sockets) -> io::Result<()> {
        let mut links = self.0.iter_mut().enumerate();
        links.try_for_each(|(place, link)| link.source.watch(sockets, place))
    }

    /// Notes that the source of the link in this place may have something to say.
    pub(in crate::gateway) fn rang(&mut self, place: usize) {
        if let Some(link) = self.0.get_mut(place) {
            link.is_rung = true;
        }
    }

    /// Hears the sources, and tells the session what holds now, of each link that has news or whose time has come.
    pub(in crate::gateway) fn turn(
        &mut self,
        now: Instant,
        (config, poller): (&GatewayConfig, &Poller),
        session: &mut Link,
    ) {
        for link in &mut self.0 {
            let is_due = link.next.is_some_and(|at| at <= now);
            if core::mem::take(&mut link.is_rung) || is_due {
                let heard = link.source.hear(now, poller);
                link.take(now, heard);
                link.say_lack(now);
                link.turn(now, config, session);
            }
        }
    }

    /// The time of the next turn.
    pub(in crate::gateway) fn next_turn(&self) -> Option<Instant> {
        self.0.iter().filter_map(|link| link.next).min()
    }

    /// The links below paths to the peer in this place.
    pub(in crate::gateway) fn of_peer(&self, now: Instant, peer: usize) -> Vec<ToldLinkReport> {
        let of_peer = self.0.iter().filter(|link| link.settings.peer == peer);
        of_peer.map(|link| link.report(now)).collect()
    }
}

impl ServedLink {
    fn take(&mut self, now: Instant, heard: Heard) {
        self.messages += heard.messages;
        self.wrong += heard.wrong;
        match heard.word {
            Some(LinkWord::News(news, valid_for)) => {
                let valid_for = valid_for.unwrap_or(self.settings.valid_for);
                self.told.take(now, news, valid_for);
            }
            Some(LinkWord::Gone) => self.told.forget(),
            None => {}
        }
        let is_late = |at: Instant| now.saturating_since(at) >= COMPLAIN_AGAIN;
        let may = self.complained_at.is_none_or(is_late);
        if let Some(why) = heard.fault.filter(|_| may) {
            self.complained_at = Some(now);
            let link = self.settings.name.as_str();
            tracing::warn!(event = "link_message_wrong", link, why, wrong = self.wrong);
        }
    }

    /// Says why the source tells nothing, when that has changed.
    fn say_lack(&mut self, now: Instant) {
        let lack = self.source.lack();
        if lack == self.lack {
            return;
        }
        let link = self.settings.name.as_str();
        if let Some(lack) = &lack
            && let Some(skipped) = self.repeats.may(now, lack.event())
        {
            tracing::warn!(event = lack.event(), link, why = %lack, skipped);
        } else if lack.is_none()
            && let Some(skipped) = self.repeats.may(now, "link_source_there")
        {
            tracing::info!(event = "link_source_there", link, skipped);
        }
        self.lack = lack;
    }

    fn evidence(&self, session: &Link) -> LinkEvidence {
        let peer = index_of(self.settings.peer);
        let Some(seen) = session.path_seen(peer, self.outer) else {
            return LinkEvidence::default();
        };
        let rate = session.inner().endpoint().path_rate(seen.inner);
        LinkEvidence {
            last_heard: seen.last_heard,
            silent_since: seen.silent_since,
            carries_less: rate.is_some_and(|rate| rate.declared_wrong),
        }
    }

    fn turn(&mut self, now: Instant, config: &GatewayConfig, session: &mut Link) {
        let (link, peer) = (
            self.settings.name.as_str(),
            config.peer_name(self.settings.peer),
        );
        let evidence = self.evidence(session);
        if let Some(fault) = self.told.look(now, &evidence) {
            let why = fault.in_words();
            tracing::warn!(
                event = "link_told_wrong",
                link,
                peer,
                fault = fault.name(),
                why
            );
        }
        let facts = self.told.facts(now);
        // A path that is not there yet, or was anew, is told again at the next look.
        let has_path = self.settings.path == 0 || self.outer.is_some();
        if has_path {
            let way = (index_of(self.settings.peer), self.outer);
            session.take_told(now, way, facts);
        }
        if facts != self.taken {
            let before = core::mem::replace(&mut self.taken, facts);
            let rate = facts.rate.map(Bitrate::as_bits_per_second);
            let has_turned = before.is_up != facts.is_up;
            // One that turns many times a second fills no log.
            let told = has_turned.then(|| self.repeats.may(now, "link_told"));
            if let Some(skipped) = told.flatten() {
                tracing::info!(
                    event = "link_told",
                    link,
                    peer,
                    up = facts.is_up,
                    rate,
                    skipped
                );
            } else {
                tracing::debug!(event = "link_told", link, peer, up = facts.is_up, rate);
            }
        }
        let source = self.source.next_at();
        self.next = self.told.next_at(now).into_iter().chain(source).min();
    }

    fn report(&self, now: Instant) -> ToldLinkReport {
        let told = self.told.news(now);
        let news = told.map(|(news, _)| news).unwrap_or_default();
        let fault = self.told.fault(now);
        let outage = news.outage.filter(|outage| outage.ends() > now);
        let ratio = |bits: BitErrorRate| bits.value();
        ToldLinkReport {
            name: self.settings.name.clone(),
            path: self.settings.path,
            source: self.settings.source.name(),
            is_heard: self.source.is_heard(),
            lack: self.source.lack().map(|lack| lack.to_string()),
            age_seconds: told.map(|(_, age)| age.as_secs_f64()),
            up: outage
                .filter(|outage| outage.covers(now))
                .map_or(news.is_up, |_| Some(false)),
            rate_out_bits_per_second: news.rate_out.map(Bitrate::as_bits_per_second),
            rate_back_bits_per_second: news.rate_back.map(Bitrate::as_bits_per_second),
            ceiling_out_bits_per_second: news.ceiling_out.map(Bitrate::as_bits_per_second),
            signal_dbm: news.signal_dbm,
            signal_to_noise_decibels: news.signal_to_noise_decibels,
            bit_error_ratio_out: news.bit_errors_out.map(ratio),
            bit_error_ratio_back: news.bit_errors_back.map(ratio),
            queue_seconds: news.queue.map(|queue| queue.as_secs_f64()),
            next_outage_in_seconds: outage
                .map(|outage| outage.begins.saturating_since(now).as_secs_f64()),
            next_outage_seconds: outage.map(|outage| {
                outage
                    .ends()
                    .saturating_since(now.max(outage.begins))
                    .as_secs_f64()
            }),
            cost: news.cost,
            is_trusted: fault.is_none(),
            fault: fault.map(fulmar_proto::told::ToldFault::in_words),
            faults: self.told.faults(),
            messages: self.messages,
            wrong_messages: self.wrong,
        }
    }
}
