//! A stream as the gateway before left it, and the notes that it must make for the next.

use super::{CHECK_MIN, Stream};
use crate::gateway::flows::{custody::Custody, flow_record::FlowRecord};
use crate::keeper::Position;
use fulmar_proto::splice::ResetCode;
use std::io;
use std::net::TcpStream;

impl Stream {
    /// Notes that the destination is about to be given the flow's first octet.
    ///
    /// # Errors
    /// The note was not written: the destination must be given nothing.
    pub(in crate::gateway) fn note_begun(&mut self) -> io::Result<()> {
        let custody = self.custody.as_mut();
        custody.map_or(Ok(()), |custody| custody.note_begun())
    }

    /// A stream that goes on where custody and the kernel's counters say. Without a socket, custody is drained
    /// and the flow then reset.
    pub(in crate::gateway) fn restored(
        socket: Option<(TcpStream, Position)>,
        custody: Box<dyn Custody>,
        record: &FlowRecord,
    ) -> Self {
        let ended = custody.is_finished();
        let (socket, position) = socket.unzip();
        let is_there = socket.is_some();
        let mut restored = Self {
            socket,
            readable: is_there,
            writable: is_there,
            preface: Vec::new(),
            ahead: position.map_or(0, |position| position.ahead),
            held: record.held && is_there,
            read: custody.end(),
            custody: Some(custody),
            ended: ended || !is_there,
            finished: false,
            far_finished: false,
            shut: false,
            broken: !is_there,
            over: ResetCode::Reset,
            unheard: false,
            starved: false,
            written: record.received,
            delivered: record.received,
            doubled: 0,
            check_at: None,
            check_pause: CHECK_MIN,
        };
        if let Some(position) = position {
            let preface = &record.preface;
            let said = preface.len() as u64;
            let given = usize::try_from(position.given).unwrap_or(usize::MAX);
            restored.preface = preface.get(given..).unwrap_or(&[]).to_vec();
            restored.read = position.taken;
            restored.delivered = position.acknowledged.saturating_sub(said);
            restored.written = restored.delivered;
            restored.doubled = position.given.saturating_sub(said) - restored.delivered;
            restored.shut = position.end_sent;
        }
        restored
    }
}
