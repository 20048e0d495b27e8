module github.com/wavelane/wavelane/simd/internal/asmgen

go 1.26.0
