//! Protocol buffers' wire format, as far as anybody writes OTLP in it.
//!
//! What is damaged, and what is allowed but written by nobody (groups, numbers longer than they
//! need to be), is *strange*: it is for the reference reader to judge, who has words for it.

/// Nothing that is read here: ask the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strange;

/// The value of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of variable length.
    Number(u64),
    /// Eight bytes, the lowest first.
    Fixed64(u64),
    /// Anything that stands behind its length: text, bytes, a message.
    Bytes(&'a [u8]),
    /// Four bytes; nothing that we read.
    Fixed32,
}

/// The fields of one message, in the order in which they are written.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of this message.
    #[must_use]
    pub fn of(message: &'a [u8]) -> Self {
        Fields { rest: message }
    }

    /// The next field with its number; none at the end.
    ///
    /// # Errors
    /// Strange: the message cannot be read further.
    #[inline]
    pub fn take(&mut self) -> Result<Option<(u32, Value<'a>)>, Strange> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = u32::try_from(number(&mut self.rest)?).map_err(|_| Strange)?;
        let value = match tag & 7 {
            0 => Value::Number(number(&mut self.rest)?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Value::Bytes(text(&mut self.rest)?),
            5 => {
                self.array::<4>()?;
                Value::Fixed32
            }
            _ => return Err(Strange),
        };
        match tag >> 3 {
            0 => Err(Strange),
            field => Ok(Some((field, value))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Strange> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(Strange)?;
        self.rest = rest;
        Ok(*head)
    }
}

/// Take a number of variable length off the beginning.
///
/// # Errors
/// Strange: it is cut short, too large, or longer than it needs to be.
#[inline]
pub fn number(rest: &mut &[u8]) -> Result<u64, Strange> {
    match *rest {
        [byte @ 0..=0x7f, tail @ ..] => {
            *rest = tail;
            Ok(u64::from(*byte))
        }
        _ => longer(rest),
    }
}

fn longer(rest: &mut &[u8]) -> Result<u64, Strange> {
    let mut value = 0;
    for (at, &byte) in rest.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if at == 9 && bits > 1 {
            return Err(Strange);
        }
        value |= bits << (7 * at);
        if byte < 0x80 {
            if byte == 0 && at > 0 {
                return Err(Strange);
            }
            *rest = rest.get(at + 1..).ok_or(Strange)?;
            return Ok(value);
        }
    }
    Err(Strange)
}

/// Take what stands behind its length off the beginning.
///
/// # Errors
/// Strange: it is cut short.
#[inline]
pub fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Strange> {
    let length = i32::try_from(number(rest)?).map_err(|_| Strange)?;
    let length = usize::try_from(length).map_err(|_| Strange)?;
    let (head, tail) = rest.split_at_checked(length).ok_or(Strange)?;
    *rest = tail;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_they_say() {
        let mut rest: &[u8] = &[0xac, 0x02, 7];
        assert_eq!(number(&mut rest), Ok(300));
        assert_eq!(rest, [7]);
        let mut largest: &[u8] = &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(number(&mut largest), Ok(u64::MAX));
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_strange() {
        for mut bytes in [&[][..], &[0x80], &[0x80, 0], &[255; 10], &[255; 11]] {
            assert_eq!(number(&mut bytes), Err(Strange), "{bytes:?}");
        }
        for mut bytes in [&[1][..], &[255, 255, 255, 255, 15]] {
            assert_eq!(text(&mut bytes), Err(Strange), "{bytes:?}");
        }
    }

    #[test]
    fn fields_come_in_order_and_groups_are_strange() {
        let mut fields = Fields::of(&[8, 5, 18, 2, 1, 2, 25, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(fields.take(), Ok(Some((1, Value::Number(5)))));
        assert_eq!(fields.take(), Ok(Some((2, Value::Bytes(&[1, 2])))));
        assert_eq!(fields.take(), Ok(Some((3, Value::Fixed64(1)))));
        assert_eq!(fields.take(), Ok(None));
        assert_eq!(Fields::of(&[11, 12]).take(), Err(Strange));
        assert_eq!(Fields::of(&[2, 0]).take(), Err(Strange));
    }
}
