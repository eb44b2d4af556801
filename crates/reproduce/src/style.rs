//! Common parts of all pages: the frame, and the styles for light, dark and print.

use crate::claims::{Checked, ClaimVerdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The styles for light, dark and print. The drawings' ink, grid and ground follow (`plot`).
const STYLE: &str = "
:root{color-scheme:light dark;--ink:#222223;--ground:#fff;--faint:#ddd;--soft:#5c5c60;--link:#1a56b0;--yes:#1a7a3a;--half:#8a5a00;--no:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e4e4e6;--ground:#16181c;--faint:#3a3d44;--soft:#a0a4ac;--link:#8ab4f8;--yes:#6fd08c;--half:#e5b450;--no:#ff8a80}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:84rem;margin:0 auto;padding:1.5rem;overflow-wrap:break-word}
p,ul,nav{max-width:52rem}a{color:var(--link)}
h1{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--faint)}
nav{border:1px solid var(--faint);border-radius:4px;padding:.3rem 1rem}nav ul{padding-left:1.2rem;margin:.3rem 0}
.warning{border:1px solid var(--no);border-left-width:6px;border-radius:4px;padding:.5rem 1rem}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,34rem),1fr));gap:1rem 2rem}
figure{margin:0;min-width:0}figcaption,small{color:var(--soft)}figcaption{font-size:.9rem}svg{display:block;width:100%;height:auto}
pre{overflow-x:auto;padding:.7rem;border:1px solid var(--faint);border-radius:4px}
.wide{overflow-x:auto}.comment{white-space:pre-line}table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--faint)}
.claims td:nth-child(1){width:22%}.claims td:nth-child(2){width:12%}.claims td:nth-child(4){width:18%}
tr:target,figure:target{outline:2px solid var(--link);outline-offset:2px}
.reproduced,.partly,.not,.open,.given{font-weight:600}.open,.given{color:var(--soft)}.reproduced{color:var(--yes)}.partly{color:var(--half)}.not{color:var(--no)}
svg [fill='#222223' i]{fill:var(--ink)}svg [stroke='#222223' i]{stroke:var(--ink)}
svg [stroke='#DDDDDE' i]{stroke:var(--faint)}svg [fill='#FFFFFE' i]{fill:var(--ground)}
@media screen and (max-width:45rem){body{padding:1rem}
thead{display:none}table,tbody,tr,td{display:block}tr{padding:.6rem 0;border-bottom:1px solid var(--faint)}.claims td:nth-child(n){width:auto}
td{border:0;padding:.1rem 0}td[data-label]::before{content:attr(data-label) ': ';color:var(--soft)}}
@media print{:root{color-scheme:light;--ink:#000;--ground:#fff;--faint:#ccc;--soft:#444;--link:#000;--yes:#1a7a3a;--half:#8a5a00;--no:#b3261e;font-size:9pt}
.claims td:nth-child(1){width:17%}.claims td:nth-child(2){width:11%}.claims td:nth-child(4){width:15%}th,td{padding:.3rem .4rem}
body{max-width:none;padding:0;font-size:9pt}.figures{grid-template-columns:1fr 1fr;gap:.6rem 1rem}figure,tr{break-inside:avoid}h2,h3,h3+p{break-after:avoid}pre{white-space:pre-wrap}}
";

/// A page that needs no other file.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
    .into_string()
}

/// A claim's verdict in words and colour. A claim that the runs leave open has another colour than one that
/// they refute.
pub(crate) fn verdict(claim: &Checked) -> Markup {
    let name = claim.verdict.name();
    html! {
        @if claim.open { span.open { (name) ": too close to tell" } }
        @else { span class=(name) { (name) } }
    }
}

/// The number of claims with this verdict.
pub(crate) fn count(claims: &[Checked], verdict: ClaimVerdict) -> usize {
    let claims = claims.iter();
    claims.filter(|claim| claim.verdict == verdict).count()
}

/// `; 4 more are given`, with an explanation, if there are any.
pub(crate) fn given(claims: &[Checked]) -> Markup {
    let given = count(claims, ClaimVerdict::Given);
    html! {
        @if given > 0 {
            "; " span.given { (given) (if given == 1 { " is given" } else { " are given" }) }
            ": it holds because a setting of ours was fitted to it or made of its words, and counts for nothing"
        }
    }
}

/// `, of these 2 too close to tell`, if there are any.
pub(crate) fn undecided(claims: &[Checked]) -> String {
    match claims.iter().filter(|claim| claim.open).count() {
        0 => String::new(),
        open => format!(", of these {open} too close to tell"),
    }
}
