package wavelane

// measureCosts leaves costs as they are: measuring would hold up the event loop.
func measureCosts(*router) {}
