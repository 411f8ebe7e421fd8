"""What must hold before and while anything is injected, and what people may take down."""
