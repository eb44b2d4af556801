//! The ports of the entries: opened, watched, given to the keeper, and closed.

use super::entry::{Entry, Port, Rule, Way};
use crate::gateway::GatewayError;
use crate::gateway::running::{Running, Target};
use crate::gateway::sockets::Token;
use std::net::SocketAddr;

impl Running {
    /// Opens an entry and watches its port.
    pub(in crate::gateway) fn add_entry(&mut self, rule: Rule) -> Result<SocketAddr, GatewayError> {
        let entry = self.open_entry(rule, None)?;
        self.watch_entry(entry)
    }

    /// Watches the port of an entry, and gives it to the keeper. No client must wait at a port of which no gateway can
    /// hear.
    pub(in crate::gateway) fn watch_entry(
        &mut self,
        entry: Entry,
    ) -> Result<SocketAddr, GatewayError> {
        match self.watch_port(&entry) {
            Ok((local, token)) => {
                self.keep_port(&entry);
                self.entries.insert(token, entry);
                Ok(local)
            }
            Err(error) => {
                self.close_port(&entry);
                Err(error)
            }
        }
    }

    fn watch_port(&mut self, entry: &Entry) -> Result<(SocketAddr, Token), GatewayError> {
        let listen = entry.rule.listen;
        let wrong = |source| GatewayError::Listen {
            what: "entry",
            listen,
            source,
        };
        let local = entry.local().map_err(wrong)?;
        let token = self.token(Target::Entry);
        let watched = match &entry.port {
            Port::Tcp(listener) => self.poller.watch_level(listener, token),
            Port::Udp(socket) => self.poller.watch_level(socket, token),
        };
        if let Err(error) = watched {
            self.targets.remove(&token);
            return Err(wrong(error));
        }
        tracing::info!(
            event = "listening",
            protocol = entry.rule.protocol.name(),
            %local,
            way = entry.rule.way.name(),
            peer = self.config.peer_name(entry.rule.peer),
        );
        if entry.rule.way == Way::Socks(None) && !local.ip().to_canonical().is_loopback() {
            tracing::warn!(
                event = "open_proxy",
                %local,
                "whoever reaches this SOCKS port can use it; write user and password_file, or \
                 listen at 127.0.0.1"
            );
        }
        Ok((local, token))
    }
}
