//! Questions to the kernel over generic netlink (`linux/genetlink.h`), which it answers at once.

use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NlasIterator,
};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;

/// The family of families, which is always this one.
const CONTROL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Kinds of messages that end an answer.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const MESSAGE_HEADER: usize = 16;
/// The header of a generic message: command, version, two octets without use.
const GENERIC_HEADER: usize = 4;
const VERSION: u8 = 1;
/// The datagrams of one answer at most, and the longest one that the kernel writes.
const DATAGRAMS_MAX: usize = 256;
const DATAGRAM_BYTES: usize = 65_536;

/// A question of one command.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) command: u8,
    /// Whether it asks for all of a kind.
    pub(super) asks_for_all: bool,
    pub(super) attributes: &'a [DefaultNla],
}

/// A socket to the kernel.
#[derive(Debug)]
pub(super) struct GenericNetlink {
    socket: OwnedFd,
    /// The number of the last question.
    number: u32,
}

impl GenericNetlink {
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = AddressFamily::NETLINK;
        let socket =
            rustix::net::socket_with(family, SocketType::RAW, flags, Some(netlink::GENERIC))?;
        // The kernel chooses the port.
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self { socket, number: 0 })
    }

    /// The kernel's number of the family of this name; none if it has no such family.
    pub(super) fn family(&mut self, name: &str) -> io::Result<Option<u16>> {
        let name = [name.as_bytes(), &[0]].concat();
        let question = Question {
            command: CTRL_CMD_GETFAMILY,
            asks_for_all: false,
            attributes: &[DefaultNla::new(CTRL_ATTR_FAMILY_NAME, name)],
        };
        match self.ask(CONTROL, &question) {
            Ok(answers) => Ok(answers.first().and_then(|answer| {
                let id = attribute(answer, CTRL_ATTR_FAMILY_ID)?;
                Some(u16::from_ne_bytes(*id.first_chunk()?))
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The attributes of each message of the answer.
    pub(super) fn ask(&mut self, family: u16, question: &Question<'_>) -> io::Result<Vec<Vec<u8>>> {
        self.number = self.number.wrapping_add(1);
        let message = written(family, self.number, question);
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        let mut datagram = vec![0; DATAGRAM_BYTES];
        let mut found = Vec::new();
        for _ in 0..DATAGRAMS_MAX {
            let (len, _) =
                rustix::net::recv(&self.socket, datagram.as_mut_slice(), RecvFlags::empty())?;
            let heard = datagram.get(..len).unwrap_or_default();
            if read(heard, self.number, &mut found)? || !question.asks_for_all {
                return Ok(found);
            }
        }
        Err(io::Error::other("its answer has no end"))
    }
}

fn written(family: u16, number: u32, question: &Question<'_>) -> Vec<u8> {
    let len = MESSAGE_HEADER + GENERIC_HEADER + question.attributes.buffer_len();
    let mut octets = vec![0; len];
    let dump = if question.asks_for_all { NLM_F_DUMP } else { 0 };
    let mut message = NetlinkBuffer::new(octets.as_mut_slice());
    message.set_length(u32::try_from(len).unwrap_or(u32::MAX));
    message.set_message_type(family);
    message.set_flags(NLM_F_REQUEST | dump);
    message.set_sequence_number(number);
    let payload = message.payload_mut();
    if let Some((header, attributes)) = payload.split_at_mut_checked(GENERIC_HEADER) {
        header.copy_from_slice(&[question.command, VERSION, 0, 0]);
        question.attributes.emit(attributes);
    }
    octets
}

/// Adds the attributes of the messages in a datagram that answer the question of this number. Whether the answer ends there.
///
/// # Errors
/// The kernel refuses, or what came is no message.
fn read(datagram: &[u8], number: u32, found: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
        let len = usize::try_from(message.length()).unwrap_or(usize::MAX);
        if message.sequence_number() == number {
            match message.message_type() {
                NLMSG_ERROR | NLMSG_DONE => {
                    let code = message
                        .payload()
                        .first_chunk()
                        .map(|c| i32::from_ne_bytes(*c));
                    return match code.filter(|code| *code < 0) {
                        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                        None => Ok(true),
                    };
                }
                _ => found.extend(message.payload().get(GENERIC_HEADER..).map(<[u8]>::to_vec)),
            }
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The value of the attribute of this kind, the first if there are several.
pub(super) fn attribute(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    let sound = NlasIterator::new(attributes).map_while(Result::ok);
    let mut meant = sound.filter(|one| one.kind() == kind);
    meant.next().map(|one| one.value().to_vec())
}

/// The whole number of four octets in the attribute of this kind.
pub(super) fn number(attributes: &[u8], kind: u16) -> Option<u32> {
    Some(u32::from_ne_bytes(
        *attribute(attributes, kind)?.first_chunk()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_control_family_is_found_by_its_name_and_an_unknown_one_is_not() {
        let mut netlink = GenericNetlink::open().expect("everybody may ask");
        assert_eq!(netlink.family("nlctrl").expect("told"), Some(CONTROL));
        assert_eq!(netlink.family("no such family").expect("told"), None);
    }

    #[test]
    fn the_answers_to_another_question_are_passed_over() {
        let question = Question {
            command: 7,
            asks_for_all: false,
            attributes: &[DefaultNla::new(1, vec![5; 3])],
        };
        let two = [written(21, 1, &question), written(21, 2, &question)].concat();
        let mut found = Vec::new();
        assert!(!read(&two, 2, &mut found).expect("sound"));
        assert_eq!(found.len(), 1);
        assert_eq!(attribute(&found[0], 1), Some(vec![5; 3]));
        assert_eq!(attribute(&found[0], 2), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_nothing_panics(octets in proptest::collection::vec(any::<u8>(), 0..200), length in 0_u32..64) {
            let mut octets = octets;
            if let Some(first) = octets.first_chunk_mut() {
                *first = length.to_ne_bytes();
            }
            let mut found = Vec::new();
            let _ = read(&octets, 0, &mut found);
            for kind in 0..8 {
                let _ = attribute(&octets, kind);
            }
        }
    }
}
