//! The live page: one document with its style, script and the words of the registry inside, so that
//! nothing else is ever asked for.

use super::registry;
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

/// The document, and the header lines that forbid it everything but itself.
///
/// # Errors
/// The kernel has no entropy source.
pub(in crate::gateway) fn page() -> io::Result<(String, String)> {
    let nonce = Base64::encode_string(&Entropy::from_system()?.array::<NONCE_BYTES>());
    let words = serde_json::to_string(&words())?;
    // In a script element only `</` and `<!--` mean anything; `<` is the same in JSON.
    let words = words.replace('<', "\\u003c");
    let document = DOCUMENT
        .replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", SCRIPT)
        .replace("/*WORDS*/", &words)
        .replace("NONCE", &nonce);
    let policy = format!(
        "Content-Security-Policy: default-src 'none'; connect-src 'self'; img-src data:; \
         style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n"
    );
    Ok((document, policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_holds_everything_and_asks_nobody() {
        let (page, policy) = page().unwrap();
        for gone in ["/*STYLE*/", "/*SCRIPT*/", "/*WORDS*/", "NONCE"] {
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
        assert_ne!(page().unwrap().1, page().unwrap().1);
    }
}
