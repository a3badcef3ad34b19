//! Frames on the wire: a kind (1 byte), the payload's length (unsigned LEB128), the payload, and its Adler-32 checksum
//! (4 bytes, little-endian).

use std::error::Error;
use std::fmt;

use crate::checksum::adler32;

/// The longest payload that a frame may have, in bytes: what three bytes of LEB128 can say.
pub const LONGEST: usize = (1 << 21) - 1;

/// One frame of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    kind: u8,
    payload: Vec<u8>,
}

impl Frame {
    /// What the payload is, for whoever asks for it.
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// The frame's content.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// Why a stream could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The stream ends inside a frame.
    Truncated,
    /// A frame says that it is longer than [`LONGEST`].
    TooLong,
    /// A payload is not what was sent.
    Checksum,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Truncated => "the stream ends inside a frame",
            Self::TooLong => "a frame is longer than allowed",
            Self::Checksum => "a payload does not match its checksum",
        })
    }
}

impl Error for DecodeError {}

/// The frames of a stream, in the order sent, as they are asked for. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Decodes `stream` from its start.
    pub fn new(stream: &'a [u8]) -> Self {
        Self { rest: stream }
    }

    fn decode_frame(&mut self) -> Result<Frame, DecodeError> {
        let kind = self.take(1)?[0];
        let length = self.length()?;
        let payload = self.take(length)?.to_vec();
        let sent = self.take(4)?;
        if adler32(&payload).to_le_bytes() != sent {
            return Err(DecodeError::Checksum);
        }
        Ok(Frame { kind, payload })
    }

    /// Takes a LEB128 number: seven bits a byte, the lowest first; the eighth says that more follow.
    fn length(&mut self) -> Result<usize, DecodeError> {
        let mut length = 0;
        for shift in [0, 7, 14] {
            let byte = self.take(1)?[0];
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(length);
            }
        }
        Err(DecodeError::TooLong)
    }

    /// Takes the next `count` bytes.
    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Iterator for Decoder<'a> {
    type Item = Result<Frame, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let frame = self.decode_frame();
        if frame.is_err() {
            self.rest = &[];
        }
        Some(frame)
    }
}

/// Appends a frame to a stream.
///
/// # Panics
/// If the payload is longer than [`LONGEST`].
pub fn encode(stream: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    assert!(payload.len() <= LONGEST, "a payload has at most {LONGEST} bytes");
    stream.push(kind);
    let mut rest = payload.len();
    while rest >= 0x80 {
        stream.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    stream.push(rest as u8);
    stream.extend_from_slice(payload);
    stream.extend_from_slice(&adler32(payload).to_le_bytes());
}
