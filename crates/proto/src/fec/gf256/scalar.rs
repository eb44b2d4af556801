//! The bulk operations one octet at a time: the form that others must equal, and the fallback.

use super::table::PRODUCT;

pub(super) fn mul_add(destination: &mut [u8], source: &[u8], factor: u8) {
    let products = &PRODUCT[usize::from(factor)];
    for (sum, &octet) in destination.iter_mut().zip(source) {
        *sum ^= products[usize::from(octet)];
    }
}

pub(super) fn dot(destination: &mut [u8], sources: &[&[u8]], coefficients: &[u8]) {
    destination.fill(0);
    for (source, &coefficient) in sources.iter().zip(coefficients) {
        mul_add(destination, source, coefficient);
    }
}
