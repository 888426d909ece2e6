"""Networks: small, lean building blocks that know tensors alone, neither worlds nor training."""
