//! The library as a program uses it: real sockets, and an emulated link between them that loses packets.
//!
//! Method: nothing here waits for a time that has to be long enough; every wait ends with what it waits for, and with
//! an error if that does not come.

mod examples;
mod found_rate;
mod gateways;
mod link;
mod messages;
mod setup;
mod stepping;
mod tasks;
mod transfer;
