"""What all stacks share: their base class, parameters, access and order."""
