//! A flow's turn: octets and messages between its socket and the link.

use super::floor::Floor;
use super::flow::{Body, Messages};
use super::stream::Turn;
use super::traffic::Traffic;
use fulmar_proto::splice::FlowId;
use std::io::ErrorKind;

/// Messages moved each way in one turn.
pub(in crate::gateway) const MESSAGES_PER_TURN: usize = 64;

impl Traffic {
    /// Gives flow `id` its turn.
    pub(in crate::gateway) fn turn(&mut self, floor: &mut Floor<'_>, id: FlowId) {
        let Some(flow) = self.flows.get(id) else {
            return;
        };
        match &flow.body {
            // The exits look after these.
            Body::Resolving | Body::Connecting => {}
            Body::Stream(_) => self.stream_turn(floor, id),
            Body::Messages(_) => self.messages_turn(floor, id),
            Body::Relayed(_) => self.relay_turn(floor, id),
        }
    }

    fn stream_turn(&mut self, floor: &mut Floor<'_>, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        let Body::Stream(stream) = &mut flow.body else {
            return;
        };
        let turn = stream.pump(floor.now, id, floor.link.inner_mut(), &mut self.scratch);
        let check = stream.next_check(floor.now);
        match turn {
            Turn::Rest => {}
            Turn::More => self.flows.wake(id),
            Turn::Over(code) => {
                floor.link.inner_mut().reset(floor.now, id, code);
                self.drop_flow(floor, id, code.name(), true);
                return;
            }
        }
        self.flows.set_timer(id, check);
    }

    fn messages_turn(&mut self, floor: &mut Floor<'_>, id: FlowId) {
        let splicer = floor.link.inner_mut();
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
                        splicer.accept_datagram(floor.now, id, &self.scratch[..len]);
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
            let Some(message) = splicer.poll_datagram(floor.now, id) else {
                break;
            };
            flow.moved.1 += message.len() as u64;
            flow.messages += 1;
            match side {
                // A message that a full socket does not take is lost, as a router would lose it.
                Messages::Own(socket) => drop(socket.send(&message)),
                Messages::Shared(client) => client.answer(&flow.destination, &message),
                Messages::Onward(other) => {
                    splicer.accept_datagram(floor.now, *other, &message);
                }
            }
        }
        if more {
            self.flows.wake(id);
        }
    }
}
