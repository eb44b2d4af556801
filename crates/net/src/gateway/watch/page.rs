//! The live page: one document with its style, script and the words of the registry inside, so that
//! nothing else is ever asked for. The verdicts are in the document itself, for who has no script, or not yet.

use super::registry;
use super::status::{PeerReport, Status};
use crate::session::Entropy;
use base64ct::{Base64, Encoding};
use serde::Serialize;
use std::io;

const DOCUMENT: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The octets of a nonce: 128 bits (Content Security Policy Level 3, section 7.1).
const NONCE_BYTES: usize = 16;

/// The page's explanation of a figure.
#[derive(Serialize)]
struct Words {
    name: String,
    help: String,
}

fn words() -> Vec<Words> {
    let words = |entry: &registry::Entry| Words {
        name: entry.full_name(),
        help: if entry.formula.is_empty() {
            format!("{}. Counted by: {}.", entry.help, entry.point.name())
        } else {
            format!("{}. Computed: {}.", entry.help, entry.formula)
        },
    };
    registry::entries().map(words).collect()
}

/// The most verdicts that are in the document before its script shows more.
const VERDICTS_MAX: usize = 12;

/// A text as HTML shows it.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

/// The verdict of a peer, in the form that the script gives it.
fn verdict(peer: &PeerReport) -> String {
    let grade = peer.verdict.grade.name();
    format!(
        "<li class=\"verdict {grade}\"><b class=\"badge {grade}\">{grade}</b><span class=\"of\">{}</span>\
         <span class=\"text\">{}</span></li>",
        escaped(&peer.name),
        escaped(&peer.verdict.text),
    )
}

/// The verdicts on links, the worst first.
fn verdicts(status: &Status) -> String {
    let mut peers: Vec<&PeerReport> = status.peers.iter().collect();
    peers.sort_by_key(|peer| core::cmp::Reverse(peer.verdict.grade));
    peers.into_iter().take(VERDICTS_MAX).map(verdict).collect()
}

/// The document about a gateway, whose status is not known while it does not answer; and the header lines that forbid it
/// everything but itself.
///
/// # Errors
/// The kernel has no entropy source.
pub(in crate::gateway) fn page(status: Option<&Status>) -> io::Result<(String, String)> {
    let nonce = Base64::encode_string(&Entropy::from_system()?.array::<NONCE_BYTES>());
    let words = serde_json::to_string(&words())?;
    // In a script element only `</` and `<!--` mean anything; `<` is the same in JSON.
    let words = words.replace('<', "\\u003c");
    let document = DOCUMENT
        .replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", SCRIPT)
        .replace("/*WORDS*/", &words)
        .replace("NONCE", &nonce)
        // What others have named comes last: nothing is looked for in it.
        .replace(
            "<!--NAME-->",
            &status.map_or_else(|| "Gateway".to_owned(), |status| escaped(&status.name)),
        )
        .replace("<!--FIRST-->", &status.map(verdicts).unwrap_or_default());
    let policy = format!(
        "Content-Security-Policy: default-src 'none'; connect-src 'self'; img-src data:; \
         style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n"
    );
    Ok((document, policy))
}

#[cfg(test)]
mod tests {
    use super::super::status::{LinkGrade, LinkVerdict};
    use super::*;

    #[test]
    fn the_document_holds_everything_and_asks_nobody() {
        let (page, policy) = page(None).unwrap();
        for gone in ["/*STYLE*/", "/*SCRIPT*/", "/*WORDS*/", "NONCE", "<!--"] {
            assert!(!page.contains(gone), "{gone} is left");
        }
        for foreign in ["http:", "https:", "src=", "@import", "url(", "innerHTML"] {
            let found = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(foreign), "{foreign}");
        }
        assert!(page.matches("nonce=\"").count() == 2, "style and script");
        assert!(policy.contains("default-src 'none'"));
        // The policy forbids them too, but then the page would be without.
        let inline = [
            " style=",
            " onclick=",
            " onload=",
            " onerror=",
            " oninput=",
            "javascript:",
        ];
        for inline in inline {
            assert!(!page.contains(inline), "{inline}");
        }
    }

    #[test]
    fn no_two_answers_share_a_nonce() {
        assert_ne!(page(None).unwrap().1, page(None).unwrap().1);
    }

    #[test]
    fn verdicts_are_in_the_document_itself_the_worst_first_and_names_are_no_markup() {
        let of = |name: &str, grade| PeerReport {
            name: name.to_owned(),
            verdict: LinkVerdict {
                grade,
                state: "good",
                text: format!("The sentence on {name}."),
            },
            ..PeerReport::default()
        };
        let mut peers = vec![
            of("ground", LinkGrade::Good),
            of("<img src=x>", LinkGrade::Bad),
        ];
        peers.extend((0..20).map(|n| of(&format!("further{n}"), LinkGrade::Good)));
        let status = Status {
            name: "a<b".to_owned(),
            peers,
            ..Status::default()
        };
        let (page, _) = page(Some(&status)).unwrap();
        let (before_script, _) = page.split_once("<script").unwrap();
        let place = |words: &str| {
            before_script
                .find(words)
                .unwrap_or_else(|| panic!("{words}"))
        };
        assert!(place("The sentence on &lt;img src=x&gt;.") < place("The sentence on ground."));
        assert!(before_script.contains("a&lt;b") && !before_script.contains("<img"));
        assert_eq!(
            before_script.matches("The sentence on").count(),
            VERDICTS_MAX
        );
    }

    #[test]
    fn the_page_is_light() {
        let (page, _) = page(None).unwrap();
        assert!(page.len() < 150_000, "{} octets", page.len());
    }
}
