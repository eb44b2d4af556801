//! Questions to a running gateway, as commands ask them.

use crate::exit::{Exit, Failure};
use anyhow::Context;
use fulmar_net::inquiry::{InquiryError, InquiryServer};
use serde::de::DeserializeOwned;

fn failure(error: InquiryError) -> Failure {
    let exit = match error {
        InquiryError::Resolve { .. }
        | InquiryError::Connect { .. }
        | InquiryError::Broken { .. } => Exit::Unreachable,
        InquiryError::Refused { .. } | InquiryError::Foreign { .. } => Exit::Failed,
    };
    Failure {
        exit,
        cause: error.into(),
    }
}

/// The gateway's answer about `target`, as JSON that is an object.
pub(super) fn ask(server: &InquiryServer, target: &str) -> Result<serde_json::Value, Failure> {
    let body = server.get(target).map_err(failure)?;
    let odd = || format!("{server} answers with something else than a gateway does");
    let value: serde_json::Value = serde_json::from_str(&body).with_context(odd)?;
    if !value.is_object() {
        return Err(anyhow::anyhow!(odd()).into());
    }
    Ok(value)
}

/// The parts of an answer that this version shows.
pub(super) fn shown<T: DeserializeOwned>(
    value: serde_json::Value,
    server: &InquiryServer,
) -> Result<T, Failure> {
    let view = serde_json::from_value(value);
    Ok(view.with_context(|| format!("{server} is of a version that this one cannot show"))?)
}
