//! The sources of links' words: a socket, a schedule, a modem, a device of this machine.

use super::device::Device;
use super::heard::{Heard, LinkWord};
use super::lack::SourceLack;
use super::modem::Modem;
use super::schedule::LinkSchedule;
use super::socket::LinkSocket;
use crate::clock::unix_time;
use crate::gateway::GatewayError;
use crate::gateway::config::{LinkSource, ToldLinkSettings};
use crate::gateway::sockets::{Poller, Sockets, Target, Token};
use fulmar_proto::dlep::DlepConfig;
use fulmar_proto::units::{Duration, Instant};
use std::io;

/// The time for which the word of a source holds that tells of its own end.
const UNTIL_TOLD: Duration = Duration::from_secs(31_536_000);

/// The source of a link's words, open.
#[derive(Debug)]
pub(super) enum Source {
    Socket(LinkSocket, Option<Token>),
    /// A plan, and the time at which it has another word.
    Schedule(LinkSchedule, Instant),
    Modem(Box<Modem>, Option<Token>),
    Device(Device),
}

impl Source {
    pub(super) fn open(settings: &ToldLinkSettings) -> Result<Self, GatewayError> {
        let refused = |source| GatewayError::ToldLink {
            link: settings.name.clone(),
            field: settings.source.name(),
            source,
        };
        match &settings.source {
            LinkSource::Socket(path) => {
                let socket = LinkSocket::open(path).map_err(refused)?;
                Ok(Self::Socket(socket, None))
            }
            LinkSource::Schedule(path) => {
                let schedule =
                    LinkSchedule::open(path).map_err(|source| GatewayError::Schedule {
                        link: settings.name.clone(),
                        file: path.clone(),
                        source,
                    })?;
                Ok(Self::Schedule(schedule, Instant::START))
            }
            LinkSource::Dlep {
                device,
                destination,
            } => {
                let config = DlepConfig {
                    destination: *destination,
                };
                let modem = Modem::open(device, config).map_err(refused)?;
                Ok(Self::Modem(Box::new(modem), None))
            }
            LinkSource::Device { device, station } => {
                let device = Device::open(device, *station).map_err(refused)?;
                Ok(Self::Device(device))
            }
        }
    }

    /// Whether somebody is there who tells.
    pub(super) fn is_heard(&self) -> bool {
        match self {
            Self::Socket(socket, _) => socket.has_writer(),
            Self::Schedule(..) => true,
            Self::Modem(modem, _) => modem.router().is_in_session(),
            Self::Device(device) => device.lack().is_none(),
        }
    }

    /// The reason why nothing is told, if one is known.
    pub(super) fn lack(&self) -> Option<SourceLack> {
        match self {
            Self::Socket(..) | Self::Schedule(..) => None,
            Self::Modem(modem, _) => modem.lack(),
            Self::Device(device) => device.lack().cloned(),
        }
    }

    /// The plan of a schedule in words; `day` is the time since 1970.
    pub(super) fn plan_in_words(&self, day: Duration) -> Option<String> {
        match self {
            Self::Schedule(schedule, _) => Some(schedule.in_words(day)),
            Self::Socket(..) | Self::Modem(..) | Self::Device(_) => None,
        }
    }

    /// The time at which it has something to do by itself.
    pub(super) fn next_at(&self) -> Option<Instant> {
        match self {
            Self::Socket(..) => None,
            Self::Schedule(_, at) => Some(*at),
            Self::Modem(modem, _) => modem.next_at(),
            Self::Device(device) => Some(device.next_at()),
        }
    }

    /// Lets what is said wake the loop, for the link in this place.
    pub(super) fn watch(&mut self, sockets: &mut Sockets, place: usize) -> io::Result<()> {
        match self {
            Self::Socket(socket, token) => {
                let named = sockets.token(Target::ToldLink(place));
                *token = Some(named);
                sockets.poller.watch_level(&*socket, named)
            }
            Self::Schedule(..) | Self::Device(_) => Ok(()),
            Self::Modem(modem, token) => {
                let named = sockets.token(Target::ToldLink(place));
                *token = Some(named);
                modem.watch(&sockets.poller, named)
            }
        }
    }

    /// Hears what was said, and does what is due.
    pub(super) fn hear(&mut self, now: Instant, poller: &Poller) -> Heard {
        match self {
            Self::Socket(socket, Some(token)) => socket.read(now, poller, *token),
            Self::Schedule(schedule, next) if *next <= now => {
                let (news, lasts) = schedule.news(now, unix_time());
                *next = now + lasts;
                Heard {
                    word: Some(LinkWord::News(news, Some(UNTIL_TOLD))),
                    messages: 1,
                    ..Heard::default()
                }
            }
            Self::Modem(modem, Some(token)) => hear_modem(modem, now, poller, *token),
            Self::Device(device) => device.hear(now),
            Self::Socket(_, None) | Self::Schedule(..) | Self::Modem(_, None) => Heard::default(),
        }
    }
}

fn hear_modem(modem: &mut Modem, now: Instant, poller: &Poller, token: Token) -> Heard {
    let before = modem.router().counters();
    modem.turn(now, poller, token);
    let after = modem.router().counters();
    let wrong = after.wrong - before.wrong;
    Heard {
        word: modem.poll_word(UNTIL_TOLD),
        messages: after.messages - before.messages,
        wrong,
        fault: (wrong > 0).then(|| "the modem breaks the protocol (RFC 8175)".to_owned()),
    }
}
