//! Both ends of a stream in one program.

use fulmar::{Config, Endpoint, new_secret_key};
use std::error::Error;
use std::io::{self, Read, Write};
use std::thread;

/// Asks the other end a question. What each of the two has read: the question, and the answer.
pub(crate) fn ask(question: &str) -> Result<(String, String), Box<dyn Error>> {
    // Each end has a key of its own, and knows the other one by its public half.
    let (ours, theirs) = (new_secret_key()?, new_secret_key()?);
    let (our_public, their_public) = (ours.public(), theirs.public());

    // The end that is called: it reads until the other one has finished, and answers.
    let called = Endpoint::bind("127.0.0.1:0", Config::new(theirs).peer(our_public))?;
    let address = called.local_addr();
    let answering = thread::spawn(move || -> io::Result<String> {
        let mut stream = called.listen()?.accept(None)?;
        let mut question = String::new();
        stream.read_to_string(&mut question)?;
        write!(stream, "{} octets came", question.len())?;
        stream.finish()?;
        Ok(question)
    });

    // The end that calls: it writes, waits until everything is confirmed, and reads the answer.
    let calling = Endpoint::bind("127.0.0.1:0", Config::new(ours))?;
    let mut stream = calling.connect(address, &their_public)?;
    stream.write_all(question.as_bytes())?;
    stream.finish()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;

    let question = answering.join().map_err(|_| "the called end panicked")??;
    Ok((question, answer))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (question, answer) = ask("how are you?")?;
    println!("{question} - {answer}");
    Ok(())
}
