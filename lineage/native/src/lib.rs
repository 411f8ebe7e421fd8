//! What ldfi reads of OTLP trace data, at the speed of decoding.
//!
//! The reference is Python's `ldfi.lineage.readers.otlp`. In here is what it does for each span and
//! each attribute; what something *means* is asked there, once for each value that was not seen
//! before ([`memory`]), and so is whatever is not written as everybody writes it ([`wire::Strange`]).
//! So there is one place only that knows attributes, URLs and operations, and this one cannot
//! disagree with it. A whole trace is then known by its shape ([`shelf`]), of which the same holds.
//! Nothing in here panics, and nothing that comes in makes it take more memory
//! than a small multiple of what came in.

pub mod attribute;
pub mod json;
pub mod memory;
pub mod reading;
pub mod request;
pub mod same;
pub mod shelf;
pub mod wire;

#[cfg(feature = "python")]
mod python;
