//! What the executor waits for, as the kernel gives it back: one number.

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

    pub(crate) fn unpack(packed: u64) -> Self {
        let container = usize::try_from(packed >> 1 & 0x7fff).unwrap_or(0);
        Self { id: packed >> 16, container, is_output: packed & 1 == 1 }
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
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
