//! What the executor waits for, as the kernel gives it back: one number.

/// No attempt has this number.
const OTHERS: u64 = !0xffff;

/// The name of what was started by other threads; whoever watches something else may not use it.
pub(crate) const SPAWNER: u16 = u16::MAX;

/// In place of a container: the client that removes those of docker or podman.
pub(crate) const REMOVAL: usize = 0x7fff;

/// What is watched: the end or the output of one container of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: u64,
    pub(crate) container: usize,
    pub(crate) is_output: bool,
}

impl Token {
    pub(crate) fn pack(self) -> u64 {
        self.id << 16 | (self.container as u64 & 0x7fff) << 1 | u64::from(self.is_output)
    }

    /// The number for something that belongs to no attempt.
    pub(crate) fn of_other(name: u16) -> u64 {
        OTHERS | u64::from(name)
    }

    /// What a number means: something of an attempt, or the name of something else.
    pub(crate) fn unpack(packed: u64) -> Result<Self, u16> {
        if packed & OTHERS == OTHERS {
            return Err(u16::try_from(packed & !OTHERS).unwrap_or(u16::MAX));
        }
        let container = usize::try_from(packed >> 1 & 0x7fff).unwrap_or(0);
        Ok(Self { id: packed >> 16, container, is_output: packed & 1 == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        for token in [
            Token { id: 0, container: 0, is_output: false },
            Token { id: 1 << 40, container: 300, is_output: true },
        ] {
            assert_eq!(Token::unpack(token.pack()), Ok(token));
        }
        assert_eq!(Token::unpack(Token::of_other(7)), Err(7));
    }
}
