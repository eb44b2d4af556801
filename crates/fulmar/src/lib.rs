//! Octets and messages to another program over a link that loses packets, encrypted, at the rate of the link however
//! much it loses.
//!
//! An [`Endpoint`] is a UDP port. It opens [`Stream`]s, which read and write as a `TcpStream` does, and
//! [`Messages`], each of which is worth something until a deadline; a [`Listener`] takes those that others open. Ends
//! know each other by their keys, and a key that was not expected gets no answer. Unlike TCP, no loss slows a stream
//! down: it sends at the rate that the path is found to carry, or that [`Config::rate`] names.
//!
//! [`new_secret_key`] makes a key. Whole programs are in `examples`: `both_ends` to begin with, `chat` and `sensor`. The
//! guide is `docs/guide/library.md` in the repository.
//!
//! Send a file's octets, and know that they have arrived:
//!
//! ```
//! use fulmar::{Config, Endpoint, PublicKey, SecretKey};
//! use std::{fs::File, io};
//! fn send(path: &str, own: SecretKey, to: &str, key: &PublicKey) -> io::Result<()> {
//!     let endpoint = Endpoint::bind("0.0.0.0:0", Config::new(own))?;
//!     let mut stream = endpoint.connect(to, key)?;
//!     io::copy(&mut File::open(path)?, &mut stream)?;
//!     stream.finish()
//! }
//! ```
//!
//! Receive them:
//!
//! ```
//! use fulmar::{Config, Endpoint, PublicKey, SecretKey};
//! use std::{fs::File, io};
//! fn receive(path: &str, own: SecretKey, from: PublicKey) -> io::Result<u64> {
//!     let config = Config::new(own).peer(from);
//!     let endpoint = Endpoint::bind("0.0.0.0:4914", config)?;
//!     let mut stream = endpoint.listen()?.accept(None)?;
//!     io::copy(&mut stream, &mut File::create(path)?)
//! }
//! ```
//!
//! Messages that are worth nothing after 200 ms:
//!
//! ```
//! use fulmar::{Endpoint, Priority, PublicKey};
//! use std::{io, time::Duration};
//! fn report(endpoint: &Endpoint, to: &str, key: &PublicKey) -> io::Result<()> {
//!     let messages = endpoint.messages(to, key)?;
//!     for reading in ["21.5", "21.6", "21.4"] {
//!         messages.send(reading.as_bytes(), Duration::from_millis(200), Priority(1))?;
//!     }
//!     messages.finish()
//! }
//! ```
//!
//! And where they arrive:
//!
//! ```
//! use fulmar::Listener;
//! fn show(listener: &Listener) -> std::io::Result<()> {
//!     let messages = listener.accept_messages(None)?;
//!     while let Some(reading) = messages.receive(None)? {
//!         println!("{}", String::from_utf8_lossy(&reading));
//!     }
//!     Ok(())
//! }
//! ```
//!
//! With the feature `tokio`, a [`Stream`] is `AsyncRead` and `AsyncWrite`, and the other calls that wait have a form
//! that is awaited:
//!
#![cfg_attr(feature = "tokio", doc = "```")]
#![cfg_attr(not(feature = "tokio"), doc = "```ignore")]
//! use fulmar::{Endpoint, PublicKey};
//! use std::io;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! async fn ask(endpoint: &Endpoint, to: &str, key: &PublicKey) -> io::Result<String> {
//!     let mut stream = endpoint.connect_async(to, key).await?;
//!     stream.write_all(b"how are you?").await?;
//!     stream.shutdown().await?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).await?;
//!     Ok(answer)
//! }
//! ```
//!
//! A program with an event loop of its own has its thread to itself with [`Endpoint::without_thread`].
//!
//! The protocol alone, without a socket, a clock or a thread, is the crate `fulmar-proto`, whose example
//! `smallest_driver` is a whole program. It begins so:
//!
//! ```
//! use fulmar_proto::{AerotpEndpoint, ConnectionConfig, EndpointConfig};
//! use fulmar_proto::{Instant, Machine, PathId, Port, Rng};
//! let mut end = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(1));
//! let config = ConnectionConfig::default();
//! let id = end.connect(Instant::START, PathId(0), Port(7), config).unwrap();
//! end.write(Instant::START, id, b"hello").unwrap();
//! let mut datagram = Vec::new();
//! assert!(end.poll_transmit(Instant::START, &mut datagram).is_some());
//! ```
//!
//! # Bounds
//! An endpoint knows 256 peers, and has 1,024 connections and 256 MiB of their data at most. Beside that a stream has
//! 256 KiB each way, and each [`Messages`] a mebibyte that came and one for each of its eight priorities that leaves.
//! Where a peer has finished or left, what had arrived stays for the program to read: 256 MiB for all together.
//! Nothing divides connections among peers: one that is known can take them all.
//! Whatever arrives, the worst that it does is to be counted and dropped.

mod board;
mod config;
mod driver;
mod endpoint;
mod epochs;
mod gateway_stream;
mod lateness;
mod letter;
mod limits;
mod messages;
mod peers;
mod pumping;
mod relay;
mod signal;
mod sorting;
mod stream;
#[cfg(feature = "tokio")]
mod tasks;

pub use config::Config;
pub use driver::Driver;
pub use endpoint::{Endpoint, Listener, new_secret_key};
pub use fulmar_net::session::{EarlyData, KeyError, PresetKey, PublicKey, SecretKey};
pub use fulmar_proto::machine::Priority;
pub use fulmar_proto::rate::RateSharing;
pub use fulmar_proto::units::Bitrate;
pub use fulmar_proto::wire::Mode;
pub use gateway_stream::GatewayStream;
pub use messages::{Expired, Messages};
pub use stream::Stream;
