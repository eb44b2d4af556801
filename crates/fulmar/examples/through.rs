//! A program on the near side of a bad link that asks a web server on the far side, through one gateway there.
//!
//!     through ADDRESS SECRET GATEWAY'S-PUBLIC-KEY HOST:PORT PATH
//!
//! The gateway's file has this program as a `[[peer]]` by its public key, and `allow` permits HOST:PORT. Keys come from
//! `cargo run -p fulmar --example chat key`.

use fulmar::{Config, Endpoint, GatewayStream, PublicKey};
use std::error::Error;
use std::io::{self, Read, Write};

/// Asks for `path` of the server at `host`, and returns the whole answer.
pub(crate) fn ask(stream: &mut GatewayStream, host: &str, path: &str) -> io::Result<String> {
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n")?;
    stream.finish()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [address, own, gateway, server, path] = words[..] else {
        return Err("write: through ADDRESS SECRET GATEWAY'S-PUBLIC-KEY HOST:PORT PATH".into());
    };
    let endpoint = Endpoint::bind("0.0.0.0:0", Config::new(own.parse()?))?;
    let key: PublicKey = gateway.parse()?;
    let mut stream = endpoint.connect_through(address, &key, server)?;
    print!("{}", ask(&mut stream, server, path)?);
    Ok(())
}
