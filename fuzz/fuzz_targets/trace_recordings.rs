//! Any octets as a table and as a capture: a value or an error of one line that names the file, and
//! whatever was read is fitted by models that a scenario takes.

#![no_main]

use fulmar_channel::LossModel;
use fulmar_trace::fit::fit;
use fulmar_trace::{
    CaptureOptions, CapturedProtocol, Losses, SequenceOptions, TableContent, is_capture,
    read_capture, read_table,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let Some((&[flags, window], octets)) = octets.split_first_chunk::<2>() else {
        return;
    };
    let window = u32::from(window) + 1;
    let losses = if is_capture(octets) {
        let options = CaptureOptions {
            port: 5004,
            protocol: if flags & 1 == 0 {
                CapturedProtocol::Rtp
            } else {
                CapturedProtocol::Aerotp
            },
            source: None,
            window,
        };
        match read_capture("file", octets, options) {
            Ok(captured) => captured.losses,
            Err(error) => return is_one_line(&error.to_string()),
        }
    } else {
        let bits = (flags & 1 == 1).then_some(4 + u32::from(flags) % 60);
        match read_table("file", octets, SequenceOptions { bits, window }) {
            Ok(TableContent::Packets(losses)) => losses,
            Ok(TableContent::Time(trace)) => return assert!(!trace.length().is_zero()),
            Err(error) => return is_one_line(&error.to_string()),
        }
    };
    assert_eq!(
        losses.lost() + losses.received(),
        losses.packets().len() as u64
    );
    // Longer ones are read, but a fit of each would leave no time to find others.
    if losses.packets().len() <= 2_000 {
        fits(&losses);
    }
});

fn is_one_line(error: &str) {
    assert!(
        error.contains("file") && error.lines().count() == 1,
        "{error}"
    );
}

fn fits(losses: &Losses) {
    let fit = fit(losses);
    assert!(fit.best().is_some());
    for fitted in &fit.models {
        assert!(fitted.loss.parse::<LossModel>().is_ok(), "{}", fitted.loss);
        assert!(!fitted.log_likelihood.is_nan() && !fitted.bic.is_nan());
        for parameter in &fitted.parameters {
            assert!(parameter.value.is_finite(), "{parameter:?}");
            let ends = parameter.low.zip(parameter.high);
            assert!(ends.is_none_or(|(low, high)| low <= high), "{parameter:?}");
        }
    }
}
