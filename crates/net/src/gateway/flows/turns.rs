//! A flow's turn: octets and messages between its socket and the link.

use super::flow::{Body, Messages};
use super::stream::Turn;
use crate::gateway::Link;
use crate::gateway::running::Running;
use crate::gateway::sockets::packets;
use fulmar_proto::splice::FlowId;
use fulmar_proto::units::Instant;
use std::io::ErrorKind;

/// Messages moved each way in one turn.
pub(in crate::gateway) const MESSAGES_PER_TURN: usize = 64;

impl Running {
    /// Gives flow `id` its turn.
    pub(in crate::gateway) fn turn(&mut self, now: Instant, link: &mut Link, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        match &mut flow.body {
            Body::Resolving => {}
            Body::Connecting(_) => {
                if self.connect_turn(now, link, id) {
                    self.stream_turn(now, link, id);
                }
            }
            Body::Stream(_) => self.stream_turn(now, link, id),
            Body::Messages(_) => self.messages_turn(now, link, id),
        }
    }

    fn stream_turn(&mut self, now: Instant, link: &mut Link, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        let Body::Stream(stream) = &mut flow.body else {
            return;
        };
        let turn = stream.pump(now, id, link.inner_mut(), &mut self.scratch);
        let check = stream.next_check(now);
        match turn {
            Turn::Rest => {}
            Turn::More => self.flows.wake(id),
            Turn::Over(code) => {
                link.inner_mut().reset(now, id, code);
                self.drop_flow(now, id, code.name(), true);
                return;
            }
        }
        self.flows.set_timer(id, check);
    }

    fn messages_turn(&mut self, now: Instant, link: &mut Link, id: FlowId) {
        let splicer = link.inner_mut();
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        let Body::Messages(side) = &flow.body else {
            return;
        };
        let mut more = false;
        if let Messages::Own(socket) = side {
            for count in 0.. {
                if count == MESSAGES_PER_TURN {
                    more = true;
                    break;
                }
                match socket.recv(&mut self.scratch) {
                    Ok(len) => {
                        flow.moved.0 += len as u64;
                        flow.messages += 1;
                        splicer.accept_datagram(now, id, &self.scratch[..len]);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // "Port unreachable" of an earlier message: nobody listens yet, or any more.
                    Err(_) => {}
                }
            }
        }
        for count in 0.. {
            if count == MESSAGES_PER_TURN {
                more = true;
                break;
            }
            let Some(message) = splicer.poll_datagram(now, id) else {
                break;
            };
            flow.moved.1 += message.len() as u64;
            flow.messages += 1;
            match side {
                // A message that a full socket does not take is lost, as a router would lose it.
                Messages::Own(socket) => drop(socket.send(&message)),
                Messages::Entry { port, client, here } => {
                    if let Some(entry) = self.entries.get(port)
                        && let crate::gateway::entries::Port::Udp(socket) = &entry.port
                    {
                        drop(packets::answer(socket, *here, *client, &message));
                    }
                }
                Messages::Association(token) => {
                    if let Some(association) = self.associations.get(token) {
                        association.send(&flow.destination, &message);
                    }
                }
            }
        }
        if more {
            self.flows.wake(id);
        }
    }
}
